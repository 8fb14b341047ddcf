// L2 normalisation of rows of float (layers/l2norm.h's definition: y = x / max(|x|, epsilon),
// norms in double).
//
// Bytes moved, e = 4 rows dim: L2Norm 2e (3e if a row does not stay in cache), L2NormGradient 3e,
// e more to accumulate.
#pragma once

#include "kernels/block_team.h"

#include <cmath>
#include <cstdint>

namespace rk {

// norms: double [rows], |x| before the maximum with epsilon.
struct L2Norm {
  int rows = 0;
  int dim = 0;
  double epsilon = 1e-12;
  const float* x = nullptr;
  float* y = nullptr;
  double* norms = nullptr;

  int blocks() const { return rows; }  // one per row
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const std::int64_t first = static_cast<std::int64_t>(block.index()) * dim;
    const double squares = team.sum(dim, [&](int d) {
      const auto value = static_cast<double>(x[first + d]);
      return value * value;
    });
    const double norm = std::sqrt(squares);
    const double length = norm < epsilon ? epsilon : norm;
    team.for_each(dim, [&](int d) {
      y[first + d] = static_cast<float>(static_cast<double>(x[first + d]) / length);
    });
    if (block.thread() == 0) norms[block.index()] = norm;
  }
};

// dx = (dy - x <x, dy> / length^2) / length, length = max(|x|, epsilon); below epsilon the length
// is a constant. dx is overwritten, or added to with accumulate; it may be dy.
struct L2NormGradient {
  int rows = 0;
  int dim = 0;
  double epsilon = 1e-12;
  const float* x = nullptr;
  const double* norms = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;
  bool accumulate = false;

  int blocks() const { return rows; }  // one per row
  template <class Block> RK_FN void operator()(const Block& block) const {
    const auto team = team_of(block);
    const std::int64_t first = static_cast<std::int64_t>(block.index()) * dim;
    const double dot = team.sum(dim, [&](int d) {
      return static_cast<double>(x[first + d]) * static_cast<double>(dy[first + d]);
    });
    const double norm = norms[block.index()];
    const bool constant = norm < epsilon;
    const double length = constant ? epsilon : norm;
    const double along = constant ? 0.0 : dot / (length * length);
    team.for_each(dim, [&](int d) {
      const auto g = static_cast<float>(
          (static_cast<double>(dy[first + d]) - along * static_cast<double>(x[first + d])) /
          length);
      dx[first + d] = accumulate ? dx[first + d] + g : g;
    });
  }
};

}  // namespace rk
