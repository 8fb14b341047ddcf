// ResNets (He et al. 2016). ResNet-18 and ResNet-50 are exactly torchvision's. Bottlenecks stride
// in their 3x3 (v1.5) or, as in the original paper and Keras, in their first 1x1 (stride_in_1x1).
// ResNet-20 is the paper's network for pictures of 32 pixels (section 4.2): first a 3x3 without
// stride or pooling, then three stages of 16, 32 and 64 channels, made of torchvision's basic
// blocks, with a 1x1 on the shortcut where channels change (the paper's option B).
// Layers: "relu", "maxpool" (not in ResNet-20), "layer1.0" ...
#pragma once

#include "weights/architectures/backbone.h"

namespace rk {

// images (N, H, W, 3) -> (N, h, w, 64), h = H / 4 rounded up.
Backbone resnet20();

// images (N, H, W, 3) -> (N, h, w, 512 or 2048), h = H / 32 rounded up.
Backbone resnet18();
Backbone resnet50(bool stride_in_1x1);

}  // namespace rk
