#include "engine/base/printable.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace rk {
namespace {

// Whether the characters that follow are shown in another direction: U+202A to U+202E and U+2066 to
// U+2069. By them a name can be made to look like another.
bool turns_text(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(character[2]);
  return (character[1] == '\x80' && last >= 0xAA && last <= 0xAE) ||
         (character[1] == '\x81' && last >= 0xA6 && last <= 0xA9);
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::size_t printable_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7F ? 0 : 1;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  const std::string_view character = text.substr(0, bytes);
  if (!std::all_of(character.begin() + 1, character.end(), continues_character)) return 0;
  const bool control = first == 0xC2 && byte(1) < 0xA0;
  return control || turns_text(character) ? 0 : bytes;
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
