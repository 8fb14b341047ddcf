// A picture in memory: uint8, height x width x 3, R G B interleaved, rows top to bottom, no padding
// between rows. Move-only. The storage ends with kSlack readable padding bytes, so that vector
// loads may run past the last pixel.
#pragma once

#include "engine/base/colours.h"
#include "engine/device/buffer.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rk {

// A rectangle of whole pixels.
struct Box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

class Image {
 public:
  static constexpr int kChannels = kColours;
  static constexpr std::size_t kSlack = 16;

  Image() = default;
  Image(int width, int height) { reset(width, height); }
  Image(Image&& other) noexcept
      : width_(std::exchange(other.width_, 0)),
        height_(std::exchange(other.height_, 0)),
        storage_(std::move(other.storage_)) {}
  Image& operator=(Image&& other) noexcept {
    width_ = std::exchange(other.width_, 0);
    height_ = std::exchange(other.height_, 0);
    storage_ = std::move(other.storage_);
    return *this;
  }

  // Changes the size, reusing the storage if large enough. The pixels are then undefined.
  void reset(int width, int height) {
    const std::size_t needed = bytes_of(width, height);
    if (storage_.bytes() < needed + kSlack) storage_ = Buffer(needed + kSlack);
    width_ = width;
    height_ = height;
  }

  int width() const { return width_; }
  int height() const { return height_; }
  bool empty() const { return width_ == 0 || height_ == 0; }
  std::size_t row_bytes() const { return static_cast<std::size_t>(width_) * kChannels; }
  std::size_t bytes() const { return bytes_of(width_, height_); }

  std::uint8_t* data() { return storage_.as<std::uint8_t>(); }
  const std::uint8_t* data() const { return storage_.as<std::uint8_t>(); }
  std::uint8_t* row(int y) { return data() + static_cast<std::size_t>(y) * row_bytes(); }
  const std::uint8_t* row(int y) const {
    return data() + static_cast<std::size_t>(y) * row_bytes();
  }
  std::uint8_t* pixel(int x, int y) { return row(y) + static_cast<std::size_t>(x) * kChannels; }
  const std::uint8_t* pixel(int x, int y) const {
    return row(y) + static_cast<std::size_t>(x) * kChannels;
  }

 private:
  static std::size_t bytes_of(int width, int height) {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * kChannels;
  }

  int width_ = 0;
  int height_ = 0;
  Buffer storage_;
};

}  // namespace rk
