#include "retrieval/report/html.h"

#include "engine/base/printable.h"
#include "weights/sealed_file.h"

#include <fmt/format.h>

#include <openssl/evp.h>

namespace rk {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

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
    const Character next = first_character(text);
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
