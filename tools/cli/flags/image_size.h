// The flags --image-size and --resize of programs that run a network on pictures of that size.
#pragma once

#include "engine/base/error.h"
#include "weights/architectures/registry.h"

#include <cstdint>
#include <string>

namespace rk {

// Throws UsageError if the network takes no images of that size.
inline void check_network_takes(const std::string& arch, std::int64_t size) {
  if (const std::int64_t least = least_image_size(arch); size < least) {
    fail<UsageError>("--image-size {}: {} takes images of {} or more", size, arch, least);
  }
}

// Throws UsageError if pictures whose short side becomes `resize` are smaller than their crop.
inline void check_resize(int resize, int size) {
  if (resize < size) {
    fail<UsageError>("--resize {} leaves less than --image-size {}; give {} or more", resize, size,
                     size);
  }
}

}  // namespace rk
