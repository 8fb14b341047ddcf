// The flag --image-size of programs that run a network on it.
#pragma once

#include "engine/base/error.h"
#include "weights/architectures/registry.h"

#include <cstdint>
#include <string>

namespace rk {

// Throws UsageError if the network takes no images of that size.
inline void check_image_size(const std::string& arch, std::int64_t size) {
  if (const std::int64_t least = least_image_size(arch); size < least) {
    fail<UsageError>("--image-size {}: {} takes images of {} or more", size, arch, least);
  }
}

}  // namespace rk
