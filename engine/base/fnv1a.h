// FNV-1a, 64 bits: a number that depends on every byte, the same on every machine. What was made
// by one call is the `hash` that the next one goes on from. Not for input that somebody may have
// chosen in order to collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace rk {

inline std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = 0xCBF29CE484222325) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

}  // namespace rk
