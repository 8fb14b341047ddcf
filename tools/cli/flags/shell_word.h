// Commands that are shown, to be typed again.
#pragma once

#include <string>

namespace rk {

// `text` as one word of a shell command, quoted if necessary.
std::string shell_word(const std::string& text);

}  // namespace rk
