// Row kernels on the CPU: rows over cores, one SerialTeam a row, scratch of its own for every
// thread. The split is that of parallel_ranges; rows do not talk, so the result does not depend on
// it.
#pragma once

#include "engine/parallel.h"
#include "kernels/flush_denormals.h"
#include "kernels/team.h"

#include <cstddef>
#include <cstdint>

namespace rk {

// f(team, row, scratch) for every row. `scratch` holds `threads` pieces of `scratch_bytes` (a
// multiple of 64, aligned so).
template <class F>
void run_rows(int threads, std::int64_t rows, std::byte* scratch, std::int64_t scratch_bytes,
              F&& f) {
  parallel_ranges(threads, rows, [&](std::int64_t begin, std::int64_t end, int member) {
    const FlushDenormals flush;
    const SerialTeam team;
    std::byte* mine = scratch + member * scratch_bytes;
    for (std::int64_t row = begin; row < end; ++row) f(team, row, mine);
  });
}

}  // namespace rk
