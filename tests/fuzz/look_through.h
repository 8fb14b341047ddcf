// Does what programs do with a file of tensors: reads every value and looks for a network.
#pragma once

#include "weights/foreign/network_weights.h"

#include <cstdint>
#include <cstdlib>

namespace rk {

inline void look_through(const TensorFile& file) {
  constexpr std::int64_t kMost = 1 << 16;  // elements; larger tensors find nothing new
  for (const StoredTensor& tensor : file.tensors) {
    const std::int64_t elements = tensor.elements();
    if (elements > kMost) continue;
    std::vector<float> space;
    const std::size_t values = is_real(tensor.type)      ? float_values(tensor, space).size()
                               : is_integer(tensor.type) ? integer_values(tensor).size()
                                                         : static_cast<std::size_t>(elements);
    if (values != static_cast<std::size_t>(elements)) std::abort();
  }
  findings(network_weights(file));
}

}  // namespace rk
