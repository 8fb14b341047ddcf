// Converts a network's weights between memory and the file formats that Rankine writes: its own
// HDF5 (weights/checkpoint.h), and safetensors, which PyTorch users load by torchvision's names.
#pragma once

#include "weights/checkpoint.h"
#include "weights/foreign/network_weights.h"

namespace rk {

// Returns a sealed checkpoint without /run.
std::vector<std::byte> checkpoint_bytes(const NetworkWeights& weights);

// Returns safetensors with the metadata {"format": "pt"}, which transformers and others require,
// and the model's description as text.
std::vector<std::byte> safetensors_bytes(const NetworkWeights& weights);

// Throw InputError unless `file`, read back, holds the model and every tensor of `weights`. `name`
// is for messages.
void check_checkpoint(std::span<const std::byte> file, const NetworkWeights& weights,
                      const std::string& name);
void check_safetensors(std::span<const std::byte> file, const NetworkWeights& weights,
                       const std::string& name);

// Copies the network of a checkpoint. Throws InputError if its tensors are not those of the stated
// network.
NetworkWeights network_weights(const Checkpoint& checkpoint);

// Opens a checkpoint or converts a foreign file to one; appends a line to `said` for each
// conversion. Throws InputError as Checkpoint, read_tensor_file() and network_weights() do;
// UsageError if a checkpoint is not of `arch`.
Checkpoint open_weights(const std::string& path, const std::string& arch,
                        std::vector<std::string>& said);

}  // namespace rk
