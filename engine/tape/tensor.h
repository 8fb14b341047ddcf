// A view of memory owned elsewhere (a program's arena): pointer, element type, dimensions, and the
// strides of rows and images. Trivially copyable; copying a Tensor never copies elements.
//
// A row is a contiguous run: the features of a sample, or the channels of a pixel (those of one
// block if channels are in blocks, engine/tape/layout.h). In a dense tensor rows and images follow
// each other without gaps. In a tensor that is a range of another tensor's channels, rows (all
// channels adjacent) or images (channels in blocks) are farther apart.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/shape.h"

#include <cstdint>
#include <type_traits>

namespace rk {

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::int64_t row_stride = 0;    // elements from one row to the next
  std::int64_t image_stride = 0;  // and from one image, or sample, to the next

  template <class T> T* as() const {
    expect(dtype == kDTypeOf<std::remove_const_t<T>>, "[tensor] expected another element type");
    return static_cast<T*>(data);
  }
  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};
static_assert(std::is_trivially_copyable_v<Tensor>);

// row: elements per row if fewer than the last dimension; 0: the last dimension.
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
