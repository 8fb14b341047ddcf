#include "engine/base/parallel.h"

#if defined(_OPENMP)
#include <omp.h>
#else
#include <thread>
#include <vector>
#endif

#include <exception>
#include <mutex>

namespace rk {
namespace {

// What members do: an exception that left a thread, memory that has run out for one, would end the
// program.
class MembersWork {
 public:
  MembersWork(void (*work)(void*, int, int), void* argument) : work_(work), argument_(argument) {}

  void operator()(int member, int members) noexcept {
    try {
      work_(argument_, member, members);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  void (*work_)(void*, int, int);
  void* argument_;
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

void parallel_run(int threads, void (*work)(void*, int, int), void* argument) {
  MembersWork run(work, argument);
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  run(omp_get_thread_num(), omp_get_num_threads());
#else
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([&run, i, threads] { run(i, threads); });
  run(0, threads);
  for (std::thread& t : others) t.join();
#endif
  run.rethrow();
}

}  // namespace rk
