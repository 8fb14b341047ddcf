// The three decoders behind decode_image(). Each gets the whole file, checks the header against the
// limits of decode.h, and fills `out`; for errors see decode.h.
#pragma once

#include "data/images/image.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rk {

void decode_jpeg(std::span<const std::byte> file, const std::string& name, Image& out);
void decode_png(std::span<const std::byte> file, const std::string& name, Image& out);
void decode_bmp(std::span<const std::byte> file, const std::string& name, Image& out);

// Throws InputError if the size stated in a header is outside the limits.
void check_image_size(long long width, long long height, const std::string& name);

// Changes the size of `picture`, whose pixels are then undefined. Throws SystemError if there is
// not the memory: the file may be good.
void resize_picture(Image& picture, int width, int height, const std::string& name);

// Red of a CMYK picture stored inverted: round(c * k / 255). With t = c k + 128, (t + t / 256) /
// 256 equals this for every pair of bytes, without a division.
constexpr std::uint8_t multiply_inverted(unsigned c, unsigned k) {
  const unsigned t = c * k + 128;
  return static_cast<std::uint8_t>((t + (t >> 8)) >> 8);
}

}  // namespace rk
