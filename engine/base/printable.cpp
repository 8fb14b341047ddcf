#include "engine/base/printable.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace rk {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues_character(text[i])) return {};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  // Overlong, a surrogate, or beyond the last code point.
  constexpr std::array<char32_t, 5> kFirst = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kFirst[length] || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return {};
  return {code, length};
}

bool is_shown(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool turns = code == 0x061C || code == 0x200E || code == 0x200F ||
                     (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return !control && !turns && code != 0xFFFE && code != 0xFFFF;
}

std::size_t printable_bytes(std::string_view text) {
  const Character first = first_character(text);
  return is_shown(first.code) ? first.bytes : 0;
}

std::string one_line(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto code = static_cast<unsigned char>(text.front());
    const std::size_t bytes = printable_bytes(text);
    if (bytes > 0) {
      result += text.substr(0, bytes);
    } else {
      result += code == '\n' ? std::string("\\n") : fmt::format("\\x{:02x}", code);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::size_t end = std::min(text.size(), kMost);
  while (end > 0 && end < text.size() && continues_character(text[end])) --end;
  return one_line(text.substr(0, end));
}

std::string in_quotes(std::string_view text) { return fmt::format("'{}'", printable(text)); }

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost));
  std::string out = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > kMost) out += fmt::format(" and {} more", names.size() - kMost);
  return out;
}

}  // namespace rk
