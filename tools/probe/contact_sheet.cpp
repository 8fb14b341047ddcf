#include "tools/probe/contact_sheet.h"

#include "engine/base/integers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rk {

Image contact_sheet(std::span<const Image> pictures) {
  constexpr int kLine = 2;             // pixels
  constexpr std::uint8_t kGrey = 128;  // photos of products end in white or black
  const int count = static_cast<int>(pictures.size());
  const int width = pictures[0].width(), height = pictures[0].height();
  const int columns = static_cast<int>(std::ceil(std::sqrt(count)));
  const int rows = divide_up(count, columns);
  Image sheet(columns * (width + kLine) - kLine, rows * (height + kLine) - kLine);
  std::fill_n(sheet.data(), sheet.bytes(), kGrey);
  for (int i = 0; i < count; ++i) {
    const int left = i % columns * (width + kLine), top = i / columns * (height + kLine);
    const Image& picture = pictures[at(i)];
    for (int y = 0; y < height; ++y) {
      std::copy_n(picture.pixel(0, y), picture.row_bytes(), sheet.pixel(left, top + y));
    }
  }
  return sheet;
}

}  // namespace rk
