// What `convert --list` prints of a file of weights.
#pragma once

#include "weights/foreign/network_weights.h"
#include "weights/tensor_files/stored_tensor.h"

#include <vector>

namespace rk {

// One line per tensor: name, type, shape, and of the finite values the least, largest and mean.
void print_tensor_table(const std::vector<StoredTensor>& tensors);

// The tensors of a Rankine file, which share the weights' memory.
std::vector<StoredTensor> stored_tensors(const NetworkWeights& weights);

}  // namespace rk
