#include "engine/base/printable.h"

#include <fmt/format.h>

namespace rk {

std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 200)) {
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

}  // namespace rk
