// Escapes untrusted text for a page: names of files and classes may hold anything.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rk {

// For element contents and quoted attributes, in HTML and XML alike: < > & " ' become references;
// bytes that are not UTF-8, control characters, and marks that change the writing direction (with
// which a name could look like another) become U+FFFD.
std::string escaped(std::string_view text);

// The same for element contents, where a line may break behind each / _ - and dot.
std::string escaped_to_break(std::string_view text);

// "data:<type>;base64,..."
std::string data_uri(std::string_view type, std::span<const std::byte> bytes);

// The source expression of a Content-Security-Policy for an inline style or script: 'sha256-...'.
std::string source_hash(std::string_view text);

}  // namespace rk
