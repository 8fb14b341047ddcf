#include "weights/onnx/basic_conv2d.h"
#include "weights/onnx/networks.h"

namespace rk {
namespace {

std::string inception(OnnxGraph& graph, const std::string& x, const std::string& name) {
  const auto unit = [&](const std::string& from, const char* branch) {
    return onnx_basic_conv2d(graph, from, name + branch);
  };
  const std::string one = unit(x, ".branch1");
  const std::string three = unit(unit(x, ".branch2.0"), ".branch2.1");
  const std::string five = unit(unit(x, ".branch3.0"), ".branch3.1");
  const std::string pooled =
      graph.max_pool(x, name + ".branch4.0", {.side = 3, .stride = 1, .padding = 1});
  return graph.concat({one, three, five, unit(pooled, ".branch4.1")}, name);
}

}  // namespace

std::string onnx_googlenet(OnnxGraph& graph, const std::string& images) {
  // Without padding no window starts outside the image, so all conventions for ceil_mode agree.
  const auto halve = [&](const std::string& x, const char* name, std::int64_t side) {
    return graph.max_pool(x, name, {.side = side, .ceil_mode = true});
  };
  std::string x = onnx_basic_conv2d(graph, images, "conv1", {.stride = 2});
  x = halve(x, "maxpool1", 3);
  x = onnx_basic_conv2d(graph, x, "conv2");
  x = onnx_basic_conv2d(graph, x, "conv3");
  x = halve(x, "maxpool2", 3);
  for (const char* name : {"inception3a", "inception3b"}) x = inception(graph, x, name);
  x = halve(x, "maxpool3", 3);
  for (const char* name :
       {"inception4a", "inception4b", "inception4c", "inception4d", "inception4e"}) {
    x = inception(graph, x, name);
  }
  x = halve(x, "maxpool4", 2);
  for (const char* name : {"inception5a", "inception5b"}) x = inception(graph, x, name);
  return x;
}

}  // namespace rk
