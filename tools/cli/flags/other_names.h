// Names that other programs use for our flags and settings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rk {

// "did you mean lr?" for learning_rate, if lr is known; otherwise suggestion() of
// engine/base/nearest.h.
std::string name_advice(std::string_view name, const std::vector<std::string>& known);

}  // namespace rk
