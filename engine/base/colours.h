// How many values a pixel of a picture has.
#pragma once

#include <cstdint>

namespace rk {

inline constexpr std::int64_t kColours = 3;  // of a picture: red, green, blue

}  // namespace rk
