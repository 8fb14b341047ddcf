// A chunk of a PNG file: length, name, content, checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rk {

inline std::string big_endian(std::size_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

inline std::string png_chunk(const std::string& name, const std::string& content) {
  std::uint32_t sum = 0xffffffff;  // CRC-32
  for (const char c : name + content) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum % 2 == 1 ? 0xedb88320 : 0);
  }
  return big_endian(content.size()) + name + content + big_endian(~sum);
}

}  // namespace rk
