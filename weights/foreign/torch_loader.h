// Generates a Python file that loads exported weights with only torchvision and embeds pictures as
// Rankine does; it accompanies a safetensors file for PyTorch users.
#pragma once

#include "weights/checkpoint.h"

#include <string>
#include <string_view>

namespace rk {

// Returns the text of <name>.py for `weights`, <name>.safetensors: at most 37 lines, or 41 if
// torchvision has only the network's blocks (resnet20). Its last line is the digest of the others.
std::string torch_loader(const ModelDescription& model, const std::string& weights);

// Whether that text is as torch_loader() returned it, unchanged by anybody.
bool is_unchanged_loader(std::string_view text);

}  // namespace rk
