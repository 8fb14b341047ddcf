// oneDNN's description of an image tensor (N, H, W, C) stored with `block` adjacent channels
// (engine/tape/layout.h): 1, 8, 16 or all of them.
#pragma once

#include "engine/base/shape.h"

#include <cstdint>

#include <oneapi/dnnl/dnnl.hpp>

namespace rk {

dnnl::memory::desc image_desc(const Shape& shape, std::int64_t block);

}  // namespace rk
