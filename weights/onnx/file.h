// Exports a network and its weights as an ONNX graph for onnxruntime, TensorRT and others:
// https://github.com/onnx/onnx/blob/main/docs/IR.md, operator set 17, IR version 8.
//
//   images [batch, 3, crop, crop] float32, RGB, (level / 255 - mean) / std
//   -> embeddings [batch, D], rows of unit length; without an embedding layer the pooled features
//
// batch is any number. Layers carry torchvision's names; convolutions and normalisations keep the
// weights bit for bit, unfolded (the runtime folds them). A classifier and counters are left out.
// The preparation of images is stated in the model's description, and in its metadata under
// "rankine" as in safetensors.
#pragma once

#include "weights/foreign/network_weights.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace rk {

// The limit of the format, which is protobuf's.
inline constexpr std::size_t kMostOnnxBytes = std::numeric_limits<std::int32_t>::max();

// Throws UsageError if the file would have more than `most` bytes.
std::vector<std::byte> onnx_bytes(const NetworkWeights& weights, std::size_t most = kMostOnnxBytes);

// Throws InputError unless `file`, read back, is such a graph with the tensors of `weights`. `name`
// is for messages.
void check_onnx(std::span<const std::byte> file, const NetworkWeights& weights,
                const std::string& name);

}  // namespace rk
