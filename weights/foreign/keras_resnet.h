// Converts Keras's ResNet-50 to torchvision's (for the algebra see
// weights/foreign/network_weights.h).
#pragma once

#include "weights/foreign/network_weights.h"

namespace rk {

// Fills model, names, tensors, ignored and notes. Throws InputError if the file holds another
// network (ResNet V2), kernels in Theano's order, or only a part of the network.
void map_keras_resnet(const TensorFile& file, NetworkWeights& out);

}  // namespace rk
