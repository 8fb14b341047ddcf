// One matrix product as the device's libraries take it (engine/device/gemm.h): C = A B, row major.
// The matrices' types are known at run time.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/error.h"

#include <cstdint>
#include <type_traits>

namespace rk {

// `stride`: elements from one row to the next. Void: const void if the matrix is only read.
template <class Void> struct StoredMatrix {
  template <class T>
  StoredMatrix(T* begin, std::int64_t row_count, std::int64_t column_count, std::int64_t row_stride)
      : data(begin),
        type(kDTypeOf<std::remove_const_t<T>>),
        rows(row_count),
        columns(column_count),
        stride(row_stride) {}
  template <class Other>  // a matrix that may be written can also be read
  StoredMatrix(const StoredMatrix<Other>& other)
      : data(other.data),
        type(other.type),
        rows(other.rows),
        columns(other.columns),
        stride(other.stride) {}
  template <class T> T* as() const {
    expect(type == kDTypeOf<std::remove_const_t<T>>, "[gemm] expected another element type");
    return static_cast<T*>(data);
  }

  Void* data;
  DType type;
  std::int64_t rows, columns, stride;
};

using Matrix = StoredMatrix<void>;

// A matrix as it enters a product: as it is stored, or transposed.
struct Factor : StoredMatrix<const void> {
  using StoredMatrix::StoredMatrix;
  bool transposed = false;
};

inline Factor transposed(Factor factor) {
  factor.transposed = !factor.transposed;
  return factor;
}

// A is (m, k), B is (k, n), C is (m, n).
struct MatrixProduct {
  Factor a, b;                 // of one type
  Matrix c;                    // of that type, or float32
  const void* bias = nullptr;  // (n), of C's type, added to every row of A B; null: none
  bool accumulate = false;     // C += A B instead of C = A B, which overwrites whatever C held

  std::int64_t m() const { return c.rows; }
  std::int64_t n() const { return c.columns; }
  std::int64_t k() const { return a.transposed ? a.rows : a.columns; }
};

}  // namespace rk
