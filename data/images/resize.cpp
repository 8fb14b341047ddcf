#include "data/images/resize.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rk {
namespace {

constexpr int kPrecision = 22;
constexpr std::uint32_t kHalf = 1U << (kPrecision - 1);

// The taps of results [begin, begin + count) of one axis. Positions are relative to the source box.
struct Taps {
  std::vector<int> first;              // (count) first source position
  std::vector<int> lengths;            // (count) number of taps
  std::vector<std::uint32_t> weights;  // (count, stride); bilinear weights are never negative
  std::size_t stride = 0;

  const std::uint32_t* of(int index) const {
    return weights.data() + static_cast<std::size_t>(index) * stride;
  }
  int begin() const { return first.front(); }
  int end() const { return first.back() + lengths.back(); }  // both ends are monotonic
};

Taps make_taps(int in, int out, int begin, int count) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(1.0, scale);
  const double reciprocal = 1.0 / filter_scale;  // Pillow multiplies; division rounds differently
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
      const double weight = std::max(0.0, 1.0 - std::abs((i + first - centre + 0.5) * reciprocal));
      exact[at(i)] = weight;
      sum += weight;
    }
    std::uint32_t* rounded = taps.weights.data() + static_cast<std::size_t>(x) * taps.stride;
    for (int i = 0; i < length; ++i) {
      const double weight = exact[at(i)];
      rounded[i] = static_cast<std::uint32_t>(0.5 + (sum != 0.0 ? weight / sum : weight) *
                                                        (1 << kPrecision));
    }
    taps.first[at(x)] = first;
    taps.lengths[at(x)] = length;
  }
  return taps;
}

// The input of a pass: rows of pixels inside an Image.
struct View {
  const std::uint8_t* data;
  std::size_t row_bytes;
  const std::uint8_t* at(int x, int y) const {
    return data + static_cast<std::size_t>(y) * row_bytes +
           static_cast<std::size_t>(x) * Image::kChannels;
  }
};

// The horizontal pass works on 16 rows at once, one per lane. A strip holds their pixels as
// [column][row], each as a word R | G << 8 | B << 16 with an undefined top byte.
constexpr int kRows = 16;
using Words [[gnu::vector_size(4 * kRows)]] = std::uint32_t;
using Words4 [[gnu::vector_size(16)]] = std::uint32_t;
using Bytes16 [[gnu::vector_size(16)]] = std::uint8_t;

Buffer make_strip(int columns) { return Buffer::of<std::uint32_t>(std::int64_t{columns} * kRows); }

void transpose(Words4 (&m)[4]) {
  const Words4 a = __builtin_shufflevector(m[0], m[1], 0, 4, 1, 5);
  const Words4 b = __builtin_shufflevector(m[0], m[1], 2, 6, 3, 7);
  const Words4 c = __builtin_shufflevector(m[2], m[3], 0, 4, 1, 5);
  const Words4 d = __builtin_shufflevector(m[2], m[3], 2, 6, 3, 7);
  m[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  m[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  m[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  m[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// `columns` is a multiple of four. The last load reads at most 13 bytes past the last wanted pixel
// (Image::kSlack): three unwanted pixels, and four bytes because a load has 16 bytes and four
// pixels have 12.
void load_strip(const std::array<const std::uint8_t*, kRows>& rows, int columns,
                std::uint32_t* strip) {
  static_assert(Image::kSlack >= 13);
  for (int x = 0; x < columns; x += 4) {
    for (std::size_t r = 0; r < kRows; r += 4) {
      Words4 block[4];
      for (std::size_t i = 0; i < 4; ++i) {
        Bytes16 bytes;
        std::memcpy(&bytes, rows[r + i] + static_cast<std::size_t>(x) * Image::kChannels, 16);
        block[i] = reinterpret_cast<Words4>(__builtin_shufflevector(
            bytes, bytes, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12));
      }
      transpose(block);
      for (std::size_t i = 0; i < 4; ++i) {
        std::memcpy(strip + (static_cast<std::size_t>(x) + i) * kRows + r, &block[i], 16);
      }
    }
  }
}

void store_strip(const std::uint32_t* strip, int columns,
                 const std::array<std::uint8_t*, kRows>& rows) {
  const auto count = static_cast<std::size_t>(columns);
  std::size_t x = 0;
  for (; x + 4 <= count; x += 4) {
    for (std::size_t r = 0; r < kRows; r += 4) {
      Words4 block[4];
      for (std::size_t i = 0; i < 4; ++i) std::memcpy(&block[i], strip + (x + i) * kRows + r, 16);
      transpose(block);
      for (std::size_t i = 0; i < 4; ++i) {
        const auto words = reinterpret_cast<Bytes16>(block[i]);
        const Bytes16 bytes = __builtin_shufflevector(words, words, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12,
                                                      13, 14, 3, 7, 11, 15);
        std::memcpy(rows[r + i] + x * Image::kChannels, &bytes, std::size_t{4} * Image::kChannels);
      }
    }
  }
  for (; x < count; ++x) {
    for (std::size_t r = 0; r < kRows; ++r) {
      std::memcpy(rows[r] + x * Image::kChannels, strip + x * kRows + r, Image::kChannels);
    }
  }
}

Words clip(Words sum) {
  const Words levels = sum >> kPrecision;
  return levels > 255U ? Words{} + 255U : levels;
}

void filter_strip(const std::uint32_t* strip, int origin, const Taps& taps, int columns,
                  std::uint32_t* results) {
  for (int x = 0; x < columns; ++x) {
    const std::uint32_t* weights = taps.of(x);
    const int length = taps.lengths[at(x)];
    const std::uint32_t* column =
        strip + static_cast<std::size_t>(taps.first[at(x)] - origin) * kRows;
    Words red = Words{} + kHalf;
    Words green = red;
    Words blue = red;
    for (int i = 0; i < length; ++i, column += kRows) {
      Words pixels;
      std::memcpy(&pixels, column, sizeof(pixels));
      red += (pixels & 255U) * weights[i];
      green += (pixels >> 8 & 255U) * weights[i];
      blue += (pixels >> 16 & 255U) * weights[i];
    }
    const Words rgb = clip(red) | clip(green) << 8 | clip(blue) << 16;
    std::memcpy(results + static_cast<std::size_t>(x) * kRows, &rgb, sizeof(rgb));
  }
}

// Rows [0, height) of `in`, whose column 0 is source column `origin`.
void horizontal_pass(const View& in, int height, int origin, const Taps& taps, Image& out) {
  const int columns = (taps.end() - origin + 3) / 4 * 4;
  const Buffer strip = make_strip(columns);
  const Buffer results = make_strip(out.width());
  for (int y = 0; y < height; y += kRows) {
    std::array<const std::uint8_t*, kRows> rows;
    std::array<std::uint8_t*, kRows> targets;
    for (int r = 0; r < kRows; ++r) {
      const int row = std::min(y + r, height - 1);  // a short group repeats its last row
      rows[at(r)] = in.at(0, row);
      targets[at(r)] = out.row(row);
    }
    load_strip(rows, columns, strip.as<std::uint32_t>());
    filter_strip(strip.as<std::uint32_t>(), origin, taps, out.width(), results.as<std::uint32_t>());
    store_strip(results.as<std::uint32_t>(), out.width(), targets);
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
  const std::size_t bytes = out.row_bytes();
  for (int y = 0; y < out.height(); ++y) {
    const std::uint32_t* weights = taps.of(y);
    const int first = taps.first[at(y)] - origin;
    const int length = taps.lengths[at(y)];
    std::uint8_t* row = out.row(y);
    std::size_t begin = 0;
    for (; begin + 64 <= bytes; begin += 64) {
      vertical_block<64>(in, weights, first, length, begin, row);
    }
    for (; begin + 16 <= bytes; begin += 16) {
      vertical_block<16>(in, weights, first, length, begin, row);
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
         "[resize] expected a part inside the result {} x {}, got {} x {} at ({}, {})", width,
         height, part.width, part.height, part.left, part.top);

  Image out(part.width, part.height);
  const bool across = source.width != width;
  const bool down = source.height != height;
  // An unfiltered axis reads the same positions of the source as `part` has in the result.
  const Taps columns = across ? make_taps(source.width, width, part.left, part.width) : Taps{};
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
    // In 64 bits, since twice an int can overflow.
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
