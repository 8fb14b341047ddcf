#include "tools/cli/flags/shell_word.h"

#include "engine/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace rk {
namespace {

// $'...', with a backslash in front of whatever is no plain character.
std::string quoted_bytes(std::string_view text) {
  std::string out = "$'";
  while (!text.empty()) {
    const std::size_t bytes = printable_bytes(text);
    if (bytes == 0) {
      // Octal: of at most three digits, so that one that follows is not read with them.
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(text.front()));
    } else {
      if (text.front() == '\'' || text.front() == '\\') out += '\\';
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out + "'";
}

}  // namespace

std::string shell_word(const std::string& text) {
  if (!text.empty() &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./=:,+@%") == std::string::npos) {
    return text;
  }
  // What one_line() would change is written as bash, ksh and zsh read it back.
  if (one_line(text) != text) return quoted_bytes(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace rk
