// A view of memory owned elsewhere (Buffer or Arena): pointer, element type, dimensions, and how
// far apart rows and images lie. Trivially copyable; copying a Tensor never copies elements.
//
// A row is what lies side by side: the features of a sample, or of a pixel its channels, those of
// one block where there are blocks (engine/tape/layout.h). Dense, a row starts where the one before
// it ends and an image where the last row of the one before it does. Of a tensor that is a range of
// another's channels, rows (all channels side by side) or images (in blocks) are farther apart.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/shape.h"

#include <type_traits>

namespace rk {

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::int64_t row_stride = 0;    // elements from a row to the next
  std::int64_t image_stride = 0;  // and from an image, or a sample, to the next

  template <class T> T* as() const {
    expect(dtype == kDTypeOf<std::remove_const_t<T>>, "[tensor] expected another element type");
    return static_cast<T*>(data);
  }
  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};
static_assert(std::is_trivially_copyable_v<Tensor>);

// row: elements of a row where they are fewer than the last dimension; 0: as many.
inline Tensor dense_tensor(void* data, DType dtype, const Shape& shape, std::int64_t row = 0) {
  const int rank = shape.rank();
  const std::int64_t images = rank > 0 ? shape[0] : 1;
  return {.data = data,
          .dtype = dtype,
          .shape = shape,
          .row_stride = row > 0 || rank == 0 ? row : shape[rank - 1],
          .image_stride = images > 0 ? shape.elements() / images : 0};
}

}  // namespace rk
