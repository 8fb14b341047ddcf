// Inception-v3 (Szegedy et al. 2016) as torchvision builds it: no input transform, average poolings
// that count their padding. Without the auxiliary classifier and the dropout before the classifier,
// which an embedding network does not have.
#pragma once

#include "weights/architectures/backbone.h"

namespace rk {

// images (N, H, W, 3), designed for 299 pixels a side, at least 75 -> (N, h, w, 2048).
Backbone inception_v3();

}  // namespace rk
