#include "retrieval/report/html.h"

#include "weights/sealed_file.h"

#include <fmt/format.h>

#include <openssl/evp.h>

#include <array>
#include <cstdint>

namespace rk {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

// The first character of `text` and its length in bytes; 0 bytes if it is not UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
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

std::string base64(std::span<const std::byte> bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // the library appends a zero
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    switch (next.code) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (next.bytes > 0 && is_shown(next.code)) {
          out += text.substr(0, next.bytes);
        } else {
          out += kReplacement;
        }
    }
    text.remove_prefix(next.bytes > 0 ? next.bytes : 1);
  }
  return out;
}

std::string escaped_to_break(std::string_view text) {
  std::string out;
  for (const char c : escaped(text)) {
    out += c;
    if (c == '/' || c == '_' || c == '-' || c == '.') out += "<wbr/>";
  }
  return out;
}

std::string data_uri(std::string_view type, std::span<const std::byte> bytes) {
  return fmt::format("data:{};base64,{}", type, base64(bytes));
}

std::string source_hash(std::string_view text) {
  const auto digest = sha256(std::as_bytes(std::span(text.data(), text.size())));
  return fmt::format("'sha256-{}'", base64(std::as_bytes(std::span(digest))));
}

}  // namespace rk
