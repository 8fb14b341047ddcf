// Row kernels on the CPU: cores share the rows, one SerialTeam a row, every thread with scratch of
// its own. Rows do not communicate, so results do not depend on which thread takes which row.
#pragma once

#include "engine/base/parallel_by_work.h"
#include "kernels/flush_denormals.h"
#include "kernels/team.h"

#include <cstddef>
#include <cstdint>

namespace rk {

// Calls f(team, row, scratch) for every row. `scratch` holds `threads` pieces of `scratch_bytes` (a
// multiple of 64), aligned to 64. `work`: as for parallel_by_work, or null if all rows cost the
// same.
template <class F>
void run_rows(int threads, std::int64_t rows, const std::int64_t* work, std::byte* scratch,
              std::int64_t scratch_bytes, F&& f) {
  const auto range = [&](std::int64_t begin, std::int64_t end, int member) {
    const FlushDenormals flush;
    const SerialTeam team;
    std::byte* mine = scratch + member * scratch_bytes;
    for (std::int64_t row = begin; row < end; ++row) f(team, row, mine);
  };
  if (work != nullptr) {
    parallel_by_work(threads, rows, work, range);
  } else {
    parallel_ranges(threads, rows, range);
  }
}

}  // namespace rk
