#include "weights/architectures/registry.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "weights/architectures/googlenet.h"
#include "weights/architectures/inception.h"
#include "weights/architectures/resnet.h"

#include <algorithm>

namespace rk {
namespace {

struct Architecture {
  std::string name;
  Backbone (*backbone)(bool stride_in_1x1);
  std::int64_t image_size;
  std::vector<Stage> stages;
};

const std::vector<Architecture>& architectures() {
  const Stage stem{"stem", {"conv1.", "bn1."}};
  const auto layer = [](int number) {
    return Stage{fmt::format("layer{}", number), {fmt::format("layer{}.", number)}};
  };
  static const std::vector<Architecture> all = {
      {"resnet20", [](bool) { return resnet20(); }, 32, {stem, layer(1), layer(2), layer(3)}},
      {"resnet18",
       [](bool) { return resnet18(); },
       224,
       {stem, layer(1), layer(2), layer(3), layer(4)}},
      {"resnet50", resnet50, 224, {stem, layer(1), layer(2), layer(3), layer(4)}},
      {"googlenet",
       [](bool) { return googlenet(); },
       224,
       {{"stem", {"conv1.", "conv2.", "conv3."}},
        {"inception3", {"inception3"}},
        {"inception4", {"inception4"}},
        {"inception5", {"inception5"}}}},
      {"inception_v3",
       [](bool) { return inception_v3(); },
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

std::string known_networks() {
  const std::vector<std::string>& names = network_names();
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

bool is_known_network(const std::string& arch) {
  return std::ranges::find(network_names(), arch) != network_names().end();
}

Backbone backbone(const std::string& arch, bool stride_in_1x1) {
  return find_architecture(arch).backbone(stride_in_1x1);
}

std::int64_t network_features(const std::string& arch) {
  const Backbone net = backbone(arch);
  return net.channels(static_cast<LayerId>(net.layers().size()) - 1);
}

const std::vector<Stage>& network_stages(const std::string& arch) {
  return find_architecture(arch).stages;
}

std::int64_t native_image_size(const std::string& arch) {
  return find_architecture(arch).image_size;
}

std::int64_t default_resize(std::int64_t image_size) { return (image_size * 256 + 112) / 224; }

std::int64_t least_image_size(const std::string& arch) { return backbone(arch).least_image_size(); }

}  // namespace rk
