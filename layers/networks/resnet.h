// ResNet-18 and ResNet-50 (He et al. 2016) exactly as torchvision builds them. Bottlenecks stride
// in their 3x3 (v1.5), or, as the original paper and Keras do, in their first 1x1 (stride_in_1x1).
// Named tensors: "conv1", "bn1", "relu", "maxpool", "layer1.0" ...
#pragma once

#include "layers/networks/network.h"

namespace rk {

// images (N, H, W, 3) -> (N, h, w, 512 or 2048), h = H / 32 rounded up.
TensorId resnet18(Program& program, const NetworkSpec& spec, TensorId images);
TensorId resnet50(Program& program, const NetworkSpec& spec, TensorId images);

}  // namespace rk
