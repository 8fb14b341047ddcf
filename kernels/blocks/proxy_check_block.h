// Which proxy a loss cannot take, in one block: the first that holds NaN, infinity or a number
// beyond `most`, else the first of length 0.
#pragma once

#include "kernels/block_team.h"
#include "kernels/launch_on_gpu.h"

#include <cmath>
#include <cstdint>

namespace rk {

struct BadProxy {
  static constexpr int kNone = 0, kZero = 1, kNotFinite = 2;
  std::int32_t row = 0;
  std::int32_t what = kNone;
};

template <class S> struct FindBadProxy {
  static constexpr bool kOnGpu = kRunsOnGpu<S>;

  int rows = 0;
  int dim = 0;
  S most = 0;
  const S* proxies = nullptr;       // [rows, dim]
  const double* lengths = nullptr;  // [rows]
  BadProxy* found = nullptr;        // [1]

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const auto worst =
        team.arg_max(rows, [&](int row) { return static_cast<float>(what_of(row)); });
    team.for_each(1, [&](int) {
      found->row = worst.index;
      found->what = worst.value > 0 ? static_cast<std::int32_t>(worst.value) : BadProxy::kNone;
    });
  }

 private:
  RK_FN int what_of(int row) const {
    const double length = lengths[row];
    if (length == 0) return BadProxy::kZero;
    if (length <= static_cast<double>(most)) return BadProxy::kNone;  // so is each of its numbers
    for (int d = 0; d < dim; ++d) {
      if (!(std::abs(proxies[static_cast<std::int64_t>(row) * dim + d]) <= most)) {
        return BadProxy::kNotFinite;
      }
    }
    return BadProxy::kNone;
  }
};

}  // namespace rk
