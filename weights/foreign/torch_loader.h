// A Python file that loads exported weights with torchvision alone and embeds pictures as Rankine
// does: what goes to PyTorch users beside a safetensors file.
#pragma once

#include "weights/checkpoint.h"

#include <string>

namespace rk {

// For <name>.py beside `weights`, <name>.safetensors: at most 36 lines, 40 where torchvision has
// the network's blocks alone (resnet20).
std::string torch_loader(const ModelDescription& model, const std::string& weights);

}  // namespace rk
