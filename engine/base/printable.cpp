#include "engine/base/printable.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace rk {

std::string printable(const std::string& text) {
  constexpr std::size_t kMost = 200;
  std::size_t end = std::min(text.size(), kMost);
  const auto continues = [&](std::size_t i) {  // a character of UTF-8
    return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  while (end > 0 && end < text.size() && continues(end)) --end;
  std::string out;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string in_quotes(const std::string& text) { return fmt::format("'{}'", printable(text)); }

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost));
  std::string out = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > kMost) out += fmt::format(" and {} more", names.size() - kMost);
  return out;
}

}  // namespace rk
