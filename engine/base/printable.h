// Text from files, made fit for messages.
#pragma once

#include <string>
#include <vector>

namespace rk {

// Escapes the control characters of ASCII and cuts the text after 200 bytes: a name in a file may
// hold anything, but a message is one line.
std::string printable(const std::string& text);

// As printable(), in single quotes.
std::string in_quotes(const std::string& text);

// Returns the first five of `names` and the number of the others: "a, b, c, d, e and 3 more".
std::string listed(const std::vector<std::string>& names);

}  // namespace rk
