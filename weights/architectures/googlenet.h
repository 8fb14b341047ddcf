// GoogLeNet (Szegedy et al. 2015) with batch normalisation, as torchvision builds it: no input
// transform, the "5x5" branches are 3x3, all poolings between stages have ceil_mode. Without the
// auxiliary classifiers and the dropout before the classifier, which an embedding network does not
// have.
#pragma once

#include "weights/architectures/backbone.h"

namespace rk {

// images (N, H, W, 3) -> (N, h, w, 1024).
Backbone googlenet();

}  // namespace rk
