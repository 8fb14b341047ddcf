// A network out of somebody else's file: its tensors by torchvision's names, and what was done to
// get them.
//
// Of GoogLeNet and Inception-v3 torchvision's names are known; their auxiliary classifiers are
// left, which the notes say, and torchvision's own files of them, known by their sum, want values
// of mean and deviation 0.5 (its transform_input). Of ResNets known are torchvision's names (timm,
// MoCo, DINO, SwAV, VICReg, Barlow Twins), Hugging Face transformers', NVIDIA's, and both
// generations of Keras. What lightning and other wrappers put in front of names is found and taken
// off, and the embedding layer may stand beside what has it in front. Of several networks in
// a file the averaged one is taken before the trained one, the query encoder before the key
// encoder, the teacher before the student.
//
// Keras's ResNet-50 becomes torchvision's exactly: kernels HWIO -> OIHW, the bias b of a
// convolution goes into the normalisation behind it (mean - b), whose epsilon e becomes 1e-5
// (variance + e - 1e-5), the stem's input channels BGR -> RGB. What is left is where the stride is
// (model.stride_in_1x1) and the preprocessing.
//
// Errors: InputError where tensors are missing or of another shape, naming the first of them, for
// another network than the one that was asked for, for networks that Rankine does not build, by
// their name, and for embeddings.
#pragma once

#include "weights/checkpoint.h"
#include "weights/tensor_files/tensor_file.h"

#include <optional>

namespace rk {

struct NetworkWeights {
  struct Tensor {
    std::string name;                   // torchvision's; fc.*, embedding.* at the end
    std::vector<std::int64_t> dims;     // empty: a counter
    std::span<const float> values;      // C order
    std::int64_t count = 0;             // of a counter
    std::shared_ptr<const void> owner;  // keeps `values` alive
  };

  ModelDescription model;
  std::string names;  // whose they were, in words
  std::vector<Tensor> tensors;
  std::vector<std::string> ignored;  // names in the file
  std::vector<std::string> notes;    // what was converted: a line each
  // What the file leaves open of the images that the network wants, and what to do about it; empty
  // where it says all.
  std::string unsaid;

  const Tensor* find(const std::string& name) const;
  // "torchvision's names: 320 tensors of a resnet50, with a classifier of 1000; 2 ignored"
  std::string summary() const;
};

// `arch`: what it is, where the shapes shall not say.
NetworkWeights network_weights(const TensorFile& file, const std::string& arch = "");

// What is wrong with values that no training can begin with: a line for each tensor that holds NaN,
// infinity or a negative variance.
std::vector<std::string> findings(const NetworkWeights& weights);

}  // namespace rk
