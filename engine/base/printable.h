// Text from a file, for messages.
#pragma once

#include <string>

namespace rk {

// Names in a file may hold anything; a message is one line.
std::string printable(const std::string& text);

// The same between quotes.
std::string in_quotes(const std::string& text);

}  // namespace rk
