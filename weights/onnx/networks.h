// The networks as ONNX graphs, as layers/networks builds them with the running statistics: images
// [batch, 3, height, width] -> features before pooling [batch, C, h, w]. Each function appends the
// layers, by torchvision's names, and returns the name of the last one.
#pragma once

#include "weights/onnx/graph.h"

namespace rk {

// A ResNet of any kind: the weights determine its blocks.
std::string onnx_resnet(OnnxGraph& graph, const std::string& images);
std::string onnx_googlenet(OnnxGraph& graph, const std::string& images);
std::string onnx_inception_v3(OnnxGraph& graph, const std::string& images);

}  // namespace rk
