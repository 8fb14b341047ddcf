#include "data/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/error.h"

namespace rk {
namespace {

constexpr int kPrecision = 22;
constexpr std::uint32_t kHalf = 1U << (kPrecision - 1);

// The taps of results [begin, begin + count) of one axis. Positions are relative to the source box.
struct Taps {
  std::vector<int> first;              // (count) first source position
  std::vector<int> lengths;            // (count) number of taps
  std::vector<std::uint32_t> weights;  // (count, stride); bilinear weights are never below zero
  std::size_t stride = 0;

  const std::uint32_t* of(int index) const {
    return weights.data() + static_cast<std::size_t>(index) * stride;
  }
  int begin() const { return first.front(); }
  int end() const { return first.back() + lengths.back(); }  // both ends grow with the position
};

Taps make_taps(int in, int out, int begin, int count) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(1.0, scale);
  const double reciprocal = 1.0 / filter_scale;  // a multiplication, as Pillow does: other roundings
  Taps taps;
  taps.stride = static_cast<std::size_t>(std::ceil(filter_scale)) * 2 + 1;
  taps.first.resize(static_cast<std::size_t>(count));
  taps.lengths.resize(static_cast<std::size_t>(count));
  taps.weights.resize(static_cast<std::size_t>(count) * taps.stride);
  std::vector<double> exact(taps.stride);
  for (int x = 0; x < count; ++x) {
    const double centre = (begin + x + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - filter_scale + 0.5));
    const int length = std::min(in, static_cast<int>(centre + filter_scale + 0.5)) - first;
    double sum = 0.0;
    for (int i = 0; i < length; ++i) {
      const double weight =
          std::max(0.0, 1.0 - std::abs((i + first - centre + 0.5) * reciprocal));
      exact[static_cast<std::size_t>(i)] = weight;
      sum += weight;
    }
    std::uint32_t* rounded = taps.weights.data() + static_cast<std::size_t>(x) * taps.stride;
    for (int i = 0; i < length; ++i) {
      const double weight = exact[static_cast<std::size_t>(i)];
      rounded[i] = static_cast<std::uint32_t>(0.5 + (sum != 0.0 ? weight / sum : weight) *
                                                       (1 << kPrecision));
    }
    taps.first[static_cast<std::size_t>(x)] = first;
    taps.lengths[static_cast<std::size_t>(x)] = length;
  }
  return taps;
}

// Rows of pixels somewhere in an Image: what a pass reads.
struct View {
  const std::uint8_t* data;
  std::size_t row_bytes;
  const std::uint8_t* at(int x, int y) const {
    return data + static_cast<std::size_t>(y) * row_bytes +
           static_cast<std::size_t>(x) * Image::kChannels;
  }
};

// One pixel of kRows rows at a time, a row a lane, each pixel loaded as one word of four bytes (the
// fourth belongs to the neighbour and is dropped): the 3 kRows sums live in registers.
constexpr std::size_t kRows = 16;
using Words [[gnu::vector_size(4 * kRows)]] = std::uint32_t;

Words clip(Words sum) {
  const Words levels = sum >> kPrecision;
  return levels > 255U ? Words{} + 255U : levels;
}

// Rows [0, height) of `in`, whose column 0 is source column `origin`.
void horizontal_pass(const View& in, int height, int origin, const Taps& taps, Image& out) {
  constexpr int kStep = static_cast<int>(kRows);
  for (int y = 0; y < height; y += kStep) {
    // The last group overlaps the one before rather than being shorter; a picture of few rows repeats
    // its last one.
    const int top = std::clamp(y, 0, std::max(0, height - kStep));
    std::array<const std::uint8_t*, kRows> rows;
    std::array<std::uint8_t*, kRows> results;
    for (std::size_t r = 0; r < kRows; ++r) {
      const int row = std::min(top + static_cast<int>(r), height - 1);
      rows[r] = in.at(0, row);
      results[r] = out.row(row);
    }
    for (int x = 0; x < out.width(); ++x) {
      const std::uint32_t* weights = taps.of(x);
      const int length = taps.lengths[static_cast<std::size_t>(x)];
      std::size_t offset =
          static_cast<std::size_t>(taps.first[static_cast<std::size_t>(x)] - origin) *
          Image::kChannels;
      Words red = Words{} + kHalf;
      Words green = red;
      Words blue = red;
      for (int i = 0; i < length; ++i, offset += Image::kChannels) {
        std::array<std::uint32_t, kRows> gathered;
        for (std::size_t r = 0; r < kRows; ++r) std::memcpy(&gathered[r], rows[r] + offset, 4);
        Words pixels;
        std::memcpy(&pixels, gathered.data(), sizeof(pixels));
        const std::uint32_t weight = weights[i];
        red += (pixels & 255U) * weight;
        green += (pixels >> 8 & 255U) * weight;
        blue += (pixels >> 16 & 255U) * weight;
      }
      const Words rgb = clip(red) | clip(green) << 8 | clip(blue) << 16;
      std::array<std::uint32_t, kRows> scattered;
      std::memcpy(scattered.data(), &rgb, sizeof(rgb));
      for (std::size_t r = 0; r < kRows; ++r) {
        std::memcpy(results[r] + static_cast<std::size_t>(x) * Image::kChannels, &scattered[r],
                    Image::kChannels);
      }
    }
  }
}

// Bytes [begin, begin + kCount) of one result row. The count is a constant so that the sums stay in
// registers.
template <std::size_t kCount>
void vertical_block(const View& in, const std::uint32_t* weights, int first, int length,
                    std::size_t begin, std::uint8_t* out) {
  std::array<std::uint32_t, kCount> sum;
  sum.fill(kHalf);
  for (int i = 0; i < length; ++i) {
    const std::uint8_t* row = in.at(0, first + i) + begin;
    for (std::size_t j = 0; j < kCount; ++j) sum[j] += row[j] * weights[i];
  }
  for (std::size_t j = 0; j < kCount; ++j) {
    out[begin + j] = static_cast<std::uint8_t>(std::min(sum[j] >> kPrecision, 255U));
  }
}

// Row r of `in` is source row r + origin.
void vertical_pass(const View& in, int origin, const Taps& taps, Image& out) {
  constexpr std::size_t kBlock = 64;
  const std::size_t bytes = out.row_bytes();
  for (int y = 0; y < out.height(); ++y) {
    const std::uint32_t* weights = taps.of(y);
    const int first = taps.first[static_cast<std::size_t>(y)] - origin;
    const int length = taps.lengths[static_cast<std::size_t>(y)];
    std::uint8_t* row = out.row(y);
    std::size_t begin = 0;
    for (; begin + kBlock <= bytes; begin += kBlock) {
      vertical_block<kBlock>(in, weights, first, length, begin, row);
    }
    for (; begin < bytes; ++begin) vertical_block<1>(in, weights, first, length, begin, row);
  }
}

void copy(const View& in, Image& out) {
  for (int y = 0; y < out.height(); ++y) std::memcpy(out.row(y), in.at(0, y), out.row_bytes());
}

bool inside(const Box& box, int width, int height) {
  return box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 &&
         box.width <= width - box.left && box.height <= height - box.top;
}

}  // namespace

Image resize_part(const Image& image, const Box& source, int width, int height, const Box& part) {
  expect(inside(source, image.width(), image.height()),
         "[resize] expected a source box inside {} x {}, got {} x {} at ({}, {})", image.width(),
         image.height(), source.width, source.height, source.left, source.top);
  expect(inside(part, width, height),
         "[resize] expected a part inside the result {} x {}, got {} x {} at ({}, {})", width, height,
         part.width, part.height, part.left, part.top);

  Image out(part.width, part.height);
  const bool across = source.width != width;
  const bool down = source.height != height;
  // Where an axis is not filtered, its wanted source pixels are those of the part.
  const Taps columns =
      across ? make_taps(source.width, width, part.left, part.width) : Taps{};
  const Taps rows = down ? make_taps(source.height, height, part.top, part.height) : Taps{};
  const int left = across ? columns.begin() : part.left;
  const int top = down ? rows.begin() : part.top;
  const View view{image.pixel(source.left + left, source.top + top), image.row_bytes()};

  if (!across && !down) {
    copy(view, out);
  } else if (!down) {
    horizontal_pass(view, part.height, left, columns, out);
  } else if (!across) {
    vertical_pass(view, top, rows, out);
  } else {
    const int shrink_height = source.height - height;
    const int shrink_width = source.width - width;
    // In 64 bits: twice an int would overflow near the limit.
    const bool vertical_first =
        shrink_height > 0 && shrink_height > 2 * static_cast<std::int64_t>(shrink_width);
    if (vertical_first) {
      Image between(columns.end() - left, part.height);
      vertical_pass(view, top, rows, between);
      horizontal_pass({between.data(), between.row_bytes()}, part.height, left, columns, out);
    } else {
      Image between(part.width, rows.end() - top);
      horizontal_pass(view, between.height(), left, columns, between);
      vertical_pass({between.data(), between.row_bytes()}, top, rows, out);
    }
  }
  return out;
}

Image resize(const Image& image, const Box& source, int width, int height) {
  return resize_part(image, source, width, height, {0, 0, width, height});
}

Image resize(const Image& image, int width, int height) {
  return resize(image, {0, 0, image.width(), image.height()}, width, height);
}

}  // namespace rk
