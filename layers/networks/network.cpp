#include "layers/networks/network.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/device/precision.h"
#include "engine/tape/layout.h"
#include "layers/graphs/graph.h"
#include "layers/l2norm.h"
#include "layers/linear.h"
#include "layers/networks/googlenet.h"
#include "layers/networks/inception.h"
#include "layers/networks/resnet.h"

namespace rk {
namespace {

struct Architecture {
  std::string name;
  TensorId (*backbone)(Program& program, const NetworkSpec& spec, TensorId images);
  std::int64_t image_size;
  std::vector<Stage> stages;
};

const std::vector<Architecture>& architectures() {
  static const std::vector<Stage> residual = {{"stem", {"conv1.", "bn1."}},
                                              {"layer1", {"layer1."}},
                                              {"layer2", {"layer2."}},
                                              {"layer3", {"layer3."}},
                                              {"layer4", {"layer4."}}};
  static const std::vector<Architecture> all = {{"resnet20",
                                                 resnet20,
                                                 32,
                                                 {{"stem", {"conv1.", "bn1."}},
                                                  {"layer1", {"layer1."}},
                                                  {"layer2", {"layer2."}},
                                                  {"layer3", {"layer3."}}}},
                                                {"resnet18", resnet18, 224, residual},
                                                {"resnet50", resnet50, 224, residual},
                                                {"googlenet",
                                                 googlenet,
                                                 224,
                                                 {{"stem", {"conv1.", "conv2.", "conv3."}},
                                                  {"inception3", {"inception3"}},
                                                  {"inception4", {"inception4"}},
                                                  {"inception5", {"inception5"}}}},
                                                {"inception_v3",
                                                 inception_v3,
                                                 299,
                                                 {{"stem", {"Conv2d_"}},
                                                  {"Mixed_5", {"Mixed_5"}},
                                                  {"Mixed_6", {"Mixed_6"}},
                                                  {"Mixed_7", {"Mixed_7"}}}}};
  return all;
}

const Architecture& find_architecture(const std::string& name) {
  for (const Architecture& a : architectures()) {
    if (a.name == name) return a;
  }
  fail<UsageError>("unknown network '{}'; {}", name, suggestion(name, network_names()));
}

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    out.reserve(architectures().size());
    for (const Architecture& a : architectures()) out.push_back(a.name);
    return out;
  }();
  return names;
}

const std::vector<Stage>& network_stages(const std::string& arch) {
  return find_architecture(arch).stages;
}

std::int64_t native_image_size(const std::string& arch) {
  return find_architecture(arch).image_size;
}

TensorId network_input(Program& program, std::int64_t batch, std::int64_t height,
                       std::int64_t width) {
  if (program.on_gpu()) {
    const Precision precision = program.options().precision;
    const std::int64_t channels = image_channels(precision);
    return program.input("input", {batch, height, width, channels}, channels,
                         image_type(precision));
  }
  // The direct convolutions want the input of a first layer with three channels as planes of
  // pixels.
  const std::int64_t planes = convolution_block() > 0 ? 1 : kColours;
  return program.input("input", {batch, height, width, kColours}, planes);
}

Network build_network(Program& program, const NetworkSpec& spec, std::int64_t batch,
                      std::int64_t height, std::int64_t width) {
  const Architecture& architecture = find_architecture(spec.arch);
  Network network{};
  network.input = network_input(program, batch, height, width);
  const TensorId x = architecture.backbone(program, spec, network.input);
  network.features = global_pool(program, x, "features", spec.pool);
  const TensorId projected = spec.dim == 0 ? network.features
                                           : linear(program, network.features, "embedding",
                                                    {.out_features = spec.dim,
                                                     .orthogonal = spec.orthogonal_embedding,
                                                     .group = ParameterGroup::kEmbedding});
  network.embeddings = l2norm(program, projected, "embeddings");
  program.set_output(network.embeddings);
  return network;
}

}  // namespace rk
