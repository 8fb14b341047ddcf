#include "engine/base/parallel.h"

#if defined(_OPENMP)
#include <omp.h>
#else
#include <thread>
#include <vector>
#endif

namespace rk {

void parallel_run(int threads, void (*work)(void*, int, int), void* argument) {
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  work(argument, omp_get_thread_num(), omp_get_num_threads());
#else
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, argument, i, threads);
  work(argument, 0, threads);
  for (std::thread& t : others) t.join();
#endif
}

}  // namespace rk
