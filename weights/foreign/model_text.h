// A network's description and input preparation, in words and as the line of JSON that tensor files
// carry as metadata.
#pragma once

#include "weights/model_description.h"

#include <string>

namespace rk {

inline constexpr const char* kModelKey = "rankine";  // key in the metadata of a file

// "RGB pixels / 255, less the mean 0.485 0.456 0.406, / 0.229 0.224 0.225; short side 256,
// bilinear with antialiasing, centre crop 224"
std::string input_text(const ModelDescription& model);

// "gem pooling with the exponent 4, an embedding of 64 numbers"
std::string head_text(const ModelDescription& model);

// "gem_p 3 in place of 4, crop 224 in place of 96": how `model` pools, strides and wants its images
// where `own` does otherwise.
std::string replaced_text(const ModelDescription& own, const ModelDescription& model);

std::string model_text(const ModelDescription& model);

// Copies the fields of `text`, of the file at `path`, about the head, the strides and the images
// into `model`; fields that are missing stay unchanged. Throws InputError for text that is no JSON,
// and for a field of another type.
void read_model_text(const std::string& text, const std::string& path, ModelDescription& model);

}  // namespace rk
