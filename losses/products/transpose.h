// to[j, i] = from[i, j] for i < rows, j < columns, on a CPU. Floats are transposed in squares of a
// vector's width, held in registers; the remainder, and doubles, one number at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace rk {

#if defined(__AVX512F__)
inline constexpr int kTransposeWidth = 16;
#elif defined(__AVX2__)
inline constexpr int kTransposeWidth = 8;
#else
inline constexpr int kTransposeWidth = 4;
#endif

using TransposeVector [[gnu::vector_size(4 * kTransposeWidth)]] = float;

// For every k without bit kStep, vector k swaps its elements whose index has that bit for the
// elements of vector k + kStep whose index lacks it. The steps of all powers of 2 below the width,
// one after the other, transpose the square.
template <int kStep, int... kLane>
[[gnu::always_inline]] inline void exchange(TransposeVector (&rows)[kTransposeWidth],
                                            std::integer_sequence<int, kLane...>) {
  constexpr int kWidth = kTransposeWidth;
  for (int k = 0; k < kWidth; ++k) {
    if ((k & kStep) != 0) continue;
    const TransposeVector low = rows[k];
    const TransposeVector high = rows[k + kStep];
    rows[k] = __builtin_shufflevector(low, high,
                                      ((kLane & kStep) != 0 ? kWidth + kLane - kStep : kLane)...);
    rows[k + kStep] = __builtin_shufflevector(
        low, high, ((kLane & kStep) != 0 ? kWidth + kLane : kLane + kStep)...);
  }
}

[[gnu::always_inline]] inline void transpose_square(const float* from, std::int64_t from_stride,
                                                    float* to, std::int64_t to_stride) {
  constexpr auto kEach = std::make_integer_sequence<int, kTransposeWidth>();
  TransposeVector rows[kTransposeWidth];
  for (int k = 0; k < kTransposeWidth; ++k) {
    std::memcpy(&rows[k], from + k * from_stride, sizeof(TransposeVector));
  }
  if constexpr (kTransposeWidth >= 16) exchange<8>(rows, kEach);
  if constexpr (kTransposeWidth >= 8) exchange<4>(rows, kEach);
  exchange<2>(rows, kEach);
  exchange<1>(rows, kEach);
  for (int k = 0; k < kTransposeWidth; ++k) {
    std::memcpy(to + k * to_stride, &rows[k], sizeof(TransposeVector));
  }
}

template <class S>
void transpose_plainly(const S* from, std::int64_t from_stride, std::int64_t rows,
                       std::int64_t columns, S* to, std::int64_t to_stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

inline void transpose(const double* from, std::int64_t from_stride, std::int64_t rows,
                      std::int64_t columns, double* to, std::int64_t to_stride) {
  transpose_plainly(from, from_stride, rows, columns, to, to_stride);
}

inline void transpose(const float* from, std::int64_t from_stride, std::int64_t rows,
                      std::int64_t columns, float* to, std::int64_t to_stride) {
  if (rows == 0 || columns == 0) return;  // the pointers may be null
  constexpr std::int64_t kWidth = kTransposeWidth;
  const std::int64_t whole_rows = rows / kWidth * kWidth;
  const std::int64_t whole_columns = columns / kWidth * kWidth;
  for (std::int64_t i = 0; i < whole_rows; i += kWidth) {
    for (std::int64_t j = 0; j < whole_columns; j += kWidth) {
      transpose_square(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
  transpose_plainly(from + whole_columns, from_stride, whole_rows, columns - whole_columns,
                    to + whole_columns * to_stride, to_stride);
  transpose_plainly(from + whole_rows * from_stride, from_stride, rows - whole_rows, columns,
                    to + whole_rows, to_stride);
}

}  // namespace rk
