// A view of memory owned elsewhere (Buffer or Arena): pointer, element type, dimensions. Dense, in
// C order. Trivially copyable; copying a Tensor never copies elements.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/shape.h"

#include <type_traits>

namespace rk {

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape;

  template <class T> T* as() const {
    expect(dtype == kDTypeOf<std::remove_const_t<T>>, "[tensor] expected another element type");
    return static_cast<T*>(data);
  }
  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};
static_assert(std::is_trivially_copyable_v<Tensor>);

}  // namespace rk
