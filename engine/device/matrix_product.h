// One matrix product as the device's libraries take it (engine/device/gemm.h): C = A B, row major.
#pragma once

#include <cstdint>

namespace rk {

// `stride`: elements from one row to the next.
template <class T> struct Matrix {
  T* data;
  std::int64_t rows, columns, stride;
};

// A matrix as it enters a product: as it is stored, or transposed.
template <class T> struct Factor {
  const T* data;
  std::int64_t rows, columns, stride;  // as stored
  bool transposed = false;
};

template <class T> Factor<T> transposed(Factor<T> factor) {
  factor.transposed = !factor.transposed;
  return factor;
}

// A is (m, k), B is (k, n), C is (m, n).
template <class T> struct MatrixProduct {
  Factor<T> a, b;
  Matrix<T> c;
  bool accumulate = false;  // C += A B instead of C = A B, which overwrites whatever C held

  std::int64_t m() const { return c.rows; }
  std::int64_t n() const { return c.columns; }
  std::int64_t k() const { return a.transposed ? a.rows : a.columns; }
};

}  // namespace rk
