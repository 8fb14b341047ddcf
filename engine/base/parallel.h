// Parallel work on CPU cores. Every CPU kernel uses this one mechanism, so that kernels share their
// threads with oneDNN (OpenMP) and a ThreadSanitizer build can use std::thread instead.
//
// Ranges depend on (count, threads) alone: the same number of threads gives the same split and so,
// in a kernel that sums per member, the same rounding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace rk {

// Calls work(argument, member, members) once for every member in [0, members), members <= threads.
// If exceptions leave `work`, one of them goes on to the caller once all members have ended.
void parallel_run(int threads, void (*work)(void* argument, int member, int members),
                  void* argument);

// f(begin, end, member): [0, count) split into `threads` contiguous ranges, empty ones left out.
template <class F> void parallel_ranges(int threads, std::int64_t count, F&& f) {
  threads =
      static_cast<int>(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(count, 1)));
  if (threads == 1) {
    if (count > 0) f(std::int64_t{0}, count, 0);
    return;
  }
  struct Call {
    std::remove_reference_t<F>* f;
    std::int64_t count;
    int threads;
  } call{std::addressof(f), count, threads};
  parallel_run(
      threads,
      [](void* argument, int member, int members) {
        const Call& c = *static_cast<Call*>(argument);
        // If the runtime starts fewer members than requested, each takes several ranges, so that
        // the split itself never changes.
        for (int part = member; part < c.threads; part += members) {
          const std::int64_t begin = c.count * part / c.threads;
          const std::int64_t end = c.count * (part + 1) / c.threads;
          if (begin < end) (*c.f)(begin, end, part);
        }
      },
      &call);
}

// f(index, member) for every index, handed out in ranges as above.
template <class F> void parallel_for(int threads, std::int64_t count, F&& f) {
  parallel_ranges(threads, count, [&](std::int64_t begin, std::int64_t end, int member) {
    for (std::int64_t i = begin; i < end; ++i) f(i, member);
  });
}

}  // namespace rk
