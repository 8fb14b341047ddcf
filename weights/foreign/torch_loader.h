// Generates a Python file that loads exported weights with only torchvision and embeds pictures as
// Rankine does; it accompanies a safetensors file for PyTorch users.
#pragma once

#include "weights/model_description.h"

#include <string>

namespace rk {

// Returns the text of <name>.py for `weights`, <name>.safetensors: at most 54 lines, or 58 if
// torchvision has only the network's blocks (resnet20). Its last line is that of
// signed_python() (weights/written_by.h).
std::string torch_loader(const ModelDescription& model, const std::string& weights);

}  // namespace rk
