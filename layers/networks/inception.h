// Inception-v3 (Szegedy et al. 2016) as torchvision builds it: no input transform, average poolings
// that count their padding. The auxiliary classifier, and the dropout in front of the classifier,
// are not part of an embedding network.
#pragma once

#include "layers/networks/network.h"

namespace rk {

// images (N, H, W, 3), made for 299 pixels a side, at least 75 -> (N, h, w, 2048).
TensorId inception_v3(Program& program, const NetworkSpec& spec, TensorId images);

}  // namespace rk
