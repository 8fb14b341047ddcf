#include "weights/written_by.h"

#include "weights/sealed_file.h"

#include <fmt/format.h>

#include <span>

namespace rk {
namespace {

constexpr const char* kAttribute = "written_by";
constexpr std::string_view kDigestBegins = "# Rankine wrote this file, SHA-256 ";

std::string digest_line(std::string_view above) {
  return fmt::format("{}{}\n", kDigestBegins, hexadecimal(sha256(std::as_bytes(std::span(above)))));
}

}  // namespace

void sign(Hdf5Writer& file) {
  file.set_attribute("/", kAttribute, std::string("Rankine ") + RK_VERSION);
}

bool is_signed(const Hdf5Reader& file) {
  return file.text_attribute("/", kAttribute).value_or("").starts_with("Rankine ");
}

std::string signed_python(const std::string& text) { return text + digest_line(text); }

bool is_unchanged_python(std::string_view text) {
  const std::size_t last = text.rfind(kDigestBegins);
  return last != std::string_view::npos && text.substr(last) == digest_line(text.substr(0, last));
}

}  // namespace rk
