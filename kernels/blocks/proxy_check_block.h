// Finds a proxy that a loss cannot take, in one block: the first that holds NaN, infinity or a
// number beyond `most`, else the first that is too short to have a direction
// (losses/products/proxy_matrix.h has the CPU's form).
#pragma once

#include "kernels/block_team.h"

#include <cmath>
#include <cstdint>

namespace rk {

// A gradient through a proxy's length is multiplied by up to 1 / kShortestProxy.
inline constexpr double kShortestProxy = 1e-30;

struct BadProxy {
  static constexpr int kNone = 0, kZero = 1, kNotFinite = 2;
  std::int32_t row = 0;
  std::int32_t what = kNone;
};

struct FindBadProxy {
  int rows = 0;
  int dim = 0;
  float most = 0;
  const float* proxies = nullptr;   // [rows, dim]
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
    if (length < kShortestProxy) return BadProxy::kZero;
    if (length <= static_cast<double>(most)) return BadProxy::kNone;  // so are all its numbers
    for (int d = 0; d < dim; ++d) {
      if (!(std::abs(proxies[static_cast<std::int64_t>(row) * dim + d]) <= most)) {
        return BadProxy::kNotFinite;
      }
    }
    return BadProxy::kNone;
  }
};

}  // namespace rk
