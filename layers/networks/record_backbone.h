// Records a network's layers (weights/architectures/backbone.h) as a program's: a convolution, its
// normalisation and what follows them are fused, or each is a node of its own (NetworkSpec::fuse).
#pragma once

#include "layers/networks/network.h"
#include "weights/architectures/backbone.h"

namespace rk {

// images: network_input(). Returns the last layer's result, (N, h, w, C).
TensorId record_backbone(Program& program, const NetworkSpec& spec, const Backbone& backbone,
                         TensorId images);

}  // namespace rk
