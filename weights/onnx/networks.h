// The networks as ONNX graphs, as layers/networks builds them on the running statistics: images
// [batch, 3, height, width] -> what is pooled [batch, C, h, w]. Each appends its layers, by
// torchvision's names, and returns the last.
#pragma once

#include "weights/onnx/graph.h"

namespace rk {

// A ResNet of any kind: the weights say which blocks there are.
std::string onnx_resnet(OnnxGraph& graph, const std::string& images);
std::string onnx_googlenet(OnnxGraph& graph, const std::string& images);
std::string onnx_inception_v3(OnnxGraph& graph, const std::string& images);

}  // namespace rk
