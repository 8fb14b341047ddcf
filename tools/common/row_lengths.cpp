#include "tools/common/row_lengths.h"

#include "engine/base/note.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rk {

void note_lengths(std::span<const float> rows, std::int64_t dim, const std::string& file,
                  const std::string& consequence) {
  if (rows.empty()) return;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  const auto width = static_cast<std::size_t>(dim);
  for (std::size_t begin = 0; begin + width <= rows.size(); begin += width) {
    double square = 0;
    for (const float x : rows.subspan(begin, width)) square += static_cast<double>(x) * x;
    least = std::min(least, std::sqrt(square));
    most = std::max(most, std::sqrt(square));
  }
  if (least > 0.99 && most < 1.01) return;
  note(fmt::format("{}: rows have lengths from {:.3g} to {:.3g}; {}", file, least, most,
                   consequence));
}

}  // namespace rk
