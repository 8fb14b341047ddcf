// The unit of GoogLeNet and Inception-v3, torchvision's BasicConv2d: convolution <name>.conv,
// normalisation <name>.bn, ReLU.
#pragma once

#include "weights/onnx/graph.h"

namespace rk {

inline std::string onnx_basic_conv2d(OnnxGraph& graph, const std::string& x,
                                     const std::string& name, const OnnxSteps& steps = {}) {
  constexpr double kEpsilon = 1e-3;  // as in layers/networks/basic_conv2d.h
  const std::string y = graph.convolution(x, name + ".conv", steps);
  return graph.relu(graph.normalisation(y, name + ".bn", kEpsilon), name);
}

}  // namespace rk
