// ONNX out: a network and its weights as the graph that onnxruntime, TensorRT and others run.
// https://github.com/onnx/onnx/blob/main/docs/IR.md, operator set 17, IR version 8.
//
//   images [batch, 3, crop, crop] float32, RGB, (level / 255 - mean) / std
//   -> embeddings [batch, D], rows of unit length; without an embedding layer the pooled features
//
// batch is any number. Layers carry torchvision's names; convolutions and normalisations stand as
// they are in the weights, bit for bit (who runs the graph folds them). A classifier and counters
// are left out. How images are to be prepared stands in the model's description, and among its
// metadata under "rankine" as in safetensors.
#pragma once

#include "weights/foreign/network_weights.h"

namespace rk {

// UsageError where the file would be larger than the 2 GiB that the format holds.
std::vector<std::byte> onnx_bytes(const NetworkWeights& weights);

// InputError unless `file`, read anew, is such a graph whose tensors are `weights`'. `name` is for
// messages.
void check_onnx(std::span<const std::byte> file, const NetworkWeights& weights,
                const std::string& name);

}  // namespace rk
