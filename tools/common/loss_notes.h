// What a program says of a --loss before it computes it.
#pragma once

#include "losses/registry.h"

#include <string>
#include <vector>

namespace rk {

// A line for each parameter without effect. text: the specification as it was given, for the lines.
std::vector<std::string> loss_notes(const LossSpec& loss, const std::string& text);

}  // namespace rk
