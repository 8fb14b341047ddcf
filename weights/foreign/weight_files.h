// Between a network's weights in memory and the file formats that Rankine writes: its own HDF5
// (weights/checkpoint.h), and safetensors, which PyTorch users load by torchvision's names.
#pragma once

#include "weights/foreign/network_weights.h"

namespace rk {

// The sealed file of weights without a run.
std::vector<std::byte> checkpoint_bytes(const NetworkWeights& weights);

// safetensors with {"format": "pt"}, what transformers and others ask for, and the description of
// the model as text.
std::vector<std::byte> safetensors_bytes(const NetworkWeights& weights);

// InputError unless `file`, read anew, holds the model and every tensor of `weights`. `name` is for
// messages.
void check_checkpoint(std::span<const std::byte> file, const NetworkWeights& weights,
                      const std::string& name);
void check_safetensors(std::span<const std::byte> file, const NetworkWeights& weights,
                       const std::string& name);

// All of a checkpoint's network, copied. InputError where its tensors are not those of the network
// that it says it is.
NetworkWeights network_weights(const Checkpoint& checkpoint);

// Ours, or what somebody else's file becomes; `said` gets a line for each thing that was done to
// it. InputError as Checkpoint, read_tensor_file and network_weights; UsageError where ours is not
// of `arch`.
Checkpoint open_weights(const std::string& path, const std::string& arch,
                        std::vector<std::string>& said);

}  // namespace rk
