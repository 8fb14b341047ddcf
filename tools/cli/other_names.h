// What people call our flags and settings who come from other programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rk {

// "did you mean lr?" for learning_rate, where lr is known; otherwise as suggestion() of
// engine/base/nearest.h.
std::string name_advice(std::string_view name, const std::vector<std::string>& known);

}  // namespace rk
