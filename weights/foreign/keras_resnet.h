// Keras's ResNet-50 as torchvision's (weights/foreign/network_weights.h has the algebra).
#pragma once

#include "weights/foreign/network_weights.h"

namespace rk {

// Was the file written by Keras?
bool is_keras(const TensorFile& file);

// Fills the model, tensors, ignored and notes. InputError where the file holds another network
// (ResNet V2), kernels of Theano's order, or not all of it.
void map_keras_resnet(const TensorFile& file, NetworkWeights& out);

}  // namespace rk
