// What a network is and how it wants its images, in words, and as one line of JSON: what files of
// tensors carry beside them.
#pragma once

#include "weights/checkpoint.h"

#include <string>

namespace rk {

inline constexpr const char* kModelKey = "rankine";  // among the metadata of a file

// "RGB pixels / 255, less the mean 0.485 0.456 0.406, / 0.229 0.224 0.225; short side 256,
// bilinear with antialiasing, centre crop 224"
std::string input_text(const ModelDescription& model);

std::string model_text(const ModelDescription& model);

// Takes over what `text` says of the head, the strides and the images; what it does not say, or
// says wrongly, stays.
void read_model_text(const std::string& text, ModelDescription& model);

}  // namespace rk
