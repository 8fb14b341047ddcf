#include "tools/common/row_lengths.h"

#include "engine/base/note.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rk {

RowLengths row_lengths(std::span<const float> rows, std::int64_t dim) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  const auto width = static_cast<std::size_t>(dim);
  for (std::size_t begin = 0; begin + width <= rows.size(); begin += width) {
    double square = 0;
    for (const float x : rows.subspan(begin, width)) square += static_cast<double>(x) * x;
    least = std::min(least, std::sqrt(square));
    most = std::max(most, std::sqrt(square));
  }
  return {least, most};
}

std::string note_lengths(std::span<const float> rows, std::int64_t dim, const std::string& file,
                         const std::string& consequence) {
  if (rows.empty()) return "";
  const RowLengths lengths = row_lengths(rows, dim);
  if (lengths.one()) return "";
  const std::string shortest = fmt::format("{:.3g}", lengths.least);
  const std::string longest = fmt::format("{:.3g}", lengths.most);
  std::string text = shortest == longest ? fmt::format("{}: all rows have length {}; {}", file,
                                                       longest, consequence)
                                         : fmt::format("{}: rows have lengths from {} to {}; {}",
                                                       file, shortest, longest, consequence);
  note(text);
  return text;
}

}  // namespace rk
