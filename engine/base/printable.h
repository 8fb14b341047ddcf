// Text from a file, for messages.
#pragma once

#include <string>
#include <vector>

namespace rk {

// Names in a file may hold anything; a message is one line.
std::string printable(const std::string& text);

// The same between quotes.
std::string in_quotes(const std::string& text);

// The first five of `names` and how many more there are: "a, b, c, d, e and 3 more".
std::string listed(const std::vector<std::string>& names);

}  // namespace rk
