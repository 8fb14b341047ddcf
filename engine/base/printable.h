// Text from outside, such as file names and what stands in files, made fit for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

// The character that `text`, which is not empty, begins with; 0 bytes if that is not UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};
Character first_character(std::string_view text);

// False for control characters (0x80 to 0x9f, which terminals obey like escapes, are some), for
// what turns the direction of text, by which a name can be made to look like another, and for what
// is no character.
bool is_shown(char32_t code);

// The length in bytes of the character that `text`, which is not empty, begins with; 0 if it should
// not be printed: it is not shown, or is not UTF-8.
std::size_t printable_bytes(std::string_view text);

// `text` as one line: whatever should not be printed is escaped, as \n or \x1b.
std::string one_line(std::string_view text);

// one_line() of what comes from a file and may be of any length: cut after 200 bytes.
std::string printable(std::string_view text);

// As printable(), in single quotes.
std::string in_quotes(std::string_view text);

// Returns the first five of `names` and the number of the others: "a, b, c, d, e and 3 more".
std::string listed(const std::vector<std::string>& names);

}  // namespace rk
