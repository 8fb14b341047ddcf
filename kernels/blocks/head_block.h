// The end of the network, rows of float: L2 normalisation (layers/l2norm.cpp's definition:
// y = x / max(|x|, epsilon), norms in double); and the gradient of a linear layer's bias.
//
// Bytes moved, e = 4 rows dim: L2Norm 2e (3e if a row does not stay in cache), L2NormGradient 3e,
// e more to accumulate, ColumnSums rows columns sizeof(T).
#pragma once

#include "kernels/block_team.h"
#include "kernels/blocks/channel_tiles.h"
#include "kernels/blocks/elementwise_block.h"

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

// sums[c] = the sum of values[r][c] over rows, in double, rounded once.
template <class T> struct ColumnSums {
  int rows = 0;
  int columns = 0;
  const T* values = nullptr;
  float* sums = nullptr;

  template <int kThreads> using Shared = FinishMemory<1, kThreads>;
  int blocks() const { return finishing_blocks(columns); }
  template <class Block>
  RK_FN void operator()(const Block& block, Shared<Block::kThreads>& shared) const {
    finish_tiles<1>(
        block, rows, columns, shared,
        [&](int row, int column, double(&sum)[1]) {
          sum[0] += static_cast<double>(
              Element<T>::widen(values[static_cast<std::int64_t>(row) * columns + column]));
        },
        [&](int column, const double(&total)[1]) { sums[column] = static_cast<float>(total[0]); });
  }
};

}  // namespace rk
