// A network from a foreign file: its tensors by torchvision's names, and notes on how they were
// converted.
//
// GoogLeNet and Inception-v3 are read by torchvision's names; their auxiliary classifiers are left
// out, with a note. torchvision's own files of these two, recognised by SHA-256, expect inputs
// normalised by mean and standard deviation 0.5 (its transform_input). ResNets are read by the
// names of torchvision (also timm, MoCo, DINO, SwAV, VICReg, Barlow Twins), Hugging Face
// transformers, NVIDIA, and both generations of Keras. Prefixes from Lightning and other wrappers
// are detected and removed, and the embedding layer may lie outside the prefix of the network.
// weights/foreign/network_choice.h chooses among several networks. The bias b of a convolution goes
// into the normalisation after it (mean - b).
//
// Keras's ResNet-50 is converted exactly to torchvision's: kernels HWIO -> OIHW; a
// normalisation's epsilon e becomes 1e-5 (variance + e - 1e-5); the stem's input channels BGR ->
// RGB. The remaining differences are the position of the stride (model.stride_in_1x1) and the
// preprocessing.
//
// Throws InputError if tensors are missing or of another shape (naming the first of them), if there
// are others inside the network's own modules, if the network is not the one asked for, if Rankine
// does not build it (naming it), and if the file holds embeddings.
#pragma once

#include "weights/model_description.h"
#include "weights/tensor_files/tensor_file.h"

#include <cstdint>

namespace rk {

struct NetworkWeights {
  struct Tensor {
    std::string name;                   // torchvision's; fc.*, embedding.* come last
    std::vector<std::int64_t> dims;     // empty: a counter
    std::span<const float> values;      // C order
    std::int64_t count = 0;             // value of a counter
    std::shared_ptr<const void> owner;  // keeps `values` alive
  };

  ModelDescription model;
  std::string names;  // whose names the file uses, in words
  std::vector<Tensor> tensors;
  std::vector<std::string> ignored;  // names in the file
  std::vector<std::string> notes;    // one line per conversion or omission
  // What the file does not say about the network's input, and what to do about it; empty if the
  // file says all.
  std::string unsaid;

  const Tensor* find(const std::string& name) const;
  // "torchvision's names: 320 tensors of a resnet50, with a classifier of 1000; 2 ignored"
  std::string summary() const;
};

// Throws InputError, naming the file, if the model's network is not known or takes no images as
// small as its crop.
void check_network(const ModelDescription& model, const std::string& path);

// `arch`: the expected network; empty: detect it from the shapes.
NetworkWeights network_weights(const TensorFile& file, const std::string& arch = "");

// For networks whose classifier was replaced by the layer that makes the embedding: fc.* become
// embedding.*. `described`: whether the file says how its network pools and wants its images.
// Throws InputError, naming `path`, if there is no fc, or an embedding layer as well, or if its
// embeddings are too long.
void take_classifier_for_embedding(NetworkWeights& weights, const std::string& path,
                                   bool described);

// Problems that make the weights unusable: a line for each tensor with NaN, infinity, a parameter
// beyond kLargestParameter or a negative variance.
std::vector<std::string> findings(const NetworkWeights& weights);

// Throws InputError that names the file's findings, of which there is at least one, and what to do.
[[noreturn]] void refuse_findings(const std::string& path, const std::vector<std::string>& found,
                                  const std::string& advice);

}  // namespace rk
