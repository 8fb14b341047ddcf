// Bytes as the text that they hold, and text as its bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace rk {

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace rk
