#include "tools/eval/contact_sheet.h"

#include "data/images/exif.h"
#include "data/images/resize.h"
#include "engine/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace rk {
namespace {

constexpr int kSide = 128;  // side of a picture's square
constexpr int kGap = 8;
constexpr int kFrame = 3;
constexpr int kAside = 32;  // between a query and its results
constexpr int kPerLine = 10;
constexpr int kDot = 3;  // pixels of a digit's dot
constexpr int kCaption = 5 * kDot + 8;
constexpr int kPitch = kSide + kCaption + kGap;

using Colour = std::array<std::uint8_t, 3>;
constexpr Colour kPaper = {250, 250, 250}, kInk = {60, 60, 60}, kMissing = {200, 200, 200},
                 kFrameColour = {40, 90, 160};

// The characters of a score, 3 dots wide and 5 high; each row is three bits, from the top.
struct Glyph {
  char character;
  std::array<std::uint8_t, 5> rows;
};
constexpr std::array<Glyph, 12> kGlyphs = {{
    {'0', {7, 5, 5, 5, 7}},
    {'1', {2, 6, 2, 2, 7}},
    {'2', {7, 1, 7, 4, 7}},
    {'3', {7, 1, 7, 1, 7}},
    {'4', {5, 5, 7, 1, 1}},
    {'5', {7, 4, 7, 1, 7}},
    {'6', {7, 4, 7, 5, 7}},
    {'7', {7, 1, 1, 2, 2}},
    {'8', {7, 5, 7, 5, 7}},
    {'9', {7, 5, 7, 1, 7}},
    {'-', {0, 0, 7, 0, 0}},
    {'.', {0, 0, 0, 0, 2}},
}};

void fill(Image& sheet, const Box& box, const Colour& colour) {
  for (int y = box.top; y < box.top + box.height; ++y) {
    for (int x = box.left; x < box.left + box.width; ++x) {
      std::copy(colour.begin(), colour.end(), sheet.pixel(x, y));
    }
  }
}

// Unknown characters are left blank.
void write(Image& sheet, int left, int top, std::string_view text) {
  for (const char c : text) {
    const auto glyph = std::find_if(kGlyphs.begin(), kGlyphs.end(),
                                    [&](const Glyph& g) { return g.character == c; });
    for (int y = 0; glyph != kGlyphs.end() && y < 5; ++y) {
      for (int x = 0; x < 3; ++x) {
        if ((glyph->rows[static_cast<std::size_t>(y)] & (4 >> x)) == 0) continue;
        fill(sheet, {left + x * kDot, top + y * kDot, kDot, kDot}, kInk);
      }
    }
    left += 4 * kDot;
  }
}

// Draws the picture within its square, keeping its aspect ratio. turn: upright by EXIF.
void draw(Image& sheet, int left, int top, const std::string& path, bool turn,
          std::vector<std::string>& problems) {
  fill(sheet, {left, top, kSide, kSide}, kMissing);
  try {
    const Image image = read_photo(path, turn).image;
    const int longest = std::max(image.width(), image.height());
    const auto scaled = [&](int side) {
      return std::max(1, static_cast<int>(std::int64_t{side} * kSide / longest));
    };
    const Image small = resize(image, scaled(image.width()), scaled(image.height()));
    fill(sheet, {left, top, kSide, kSide}, kPaper);
    for (int y = 0; y < small.height(); ++y) {
      std::copy_n(
          small.row(y), small.row_bytes(),
          sheet.pixel(left + (kSide - small.width()) / 2, top + (kSide - small.height()) / 2 + y));
    }
  } catch (const InputError& error) {
    problems.emplace_back(error.what());
  }
}

std::size_t shown_of(const SheetRow& row) {
  return std::min(row.results.size(), kMostSheetResults);
}
int lines_of(const SheetRow& row) {
  return std::max(1, static_cast<int>((shown_of(row) + kPerLine - 1) / kPerLine));
}

}  // namespace

Image contact_sheet(const std::vector<SheetRow>& rows, SheetTurns turns,
                    std::vector<std::string>& problems) {
  const std::size_t shown = std::min(rows.size(), kMostSheetRows);
  int lines = 0, columns = 1;
  for (std::size_t i = 0; i < shown; ++i) {
    lines += lines_of(rows[i]);
    columns = std::max(columns, std::min(kPerLine, static_cast<int>(shown_of(rows[i]))));
  }
  Image sheet(kGap + kSide + kAside + columns * (kSide + kGap), kGap + lines * kPitch);
  fill(sheet, {0, 0, sheet.width(), sheet.height()}, kPaper);
  int top = kGap;
  for (std::size_t i = 0; i < shown; ++i) {
    const Box frame = {kGap - kFrame, top - kFrame, kSide + 2 * kFrame, kSide + 2 * kFrame};
    fill(sheet, frame, kFrameColour);
    draw(sheet, kGap, top, rows[i].query, turns.queries, problems);
    for (std::size_t r = 0; r < shown_of(rows[i]); ++r) {
      const int left = kGap + kSide + kAside + static_cast<int>(r % kPerLine) * (kSide + kGap);
      const int y = top + static_cast<int>(r / kPerLine) * kPitch;
      draw(sheet, left, y, rows[i].results[r].path, turns.results, problems);
      write(sheet, left, y + kSide + 4, fmt::format("{:.4f}", rows[i].results[r].score));
    }
    top += lines_of(rows[i]) * kPitch;
  }
  return sheet;
}

}  // namespace rk
