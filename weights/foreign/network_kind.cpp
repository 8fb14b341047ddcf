#include "weights/foreign/network_kind.h"

#include "engine/base/english.h"
#include "weights/architectures/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace rk {
namespace {

using Kind = NetworkTensor::Kind;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

// A network of which no more tensors are missing is told by what is missing.
constexpr std::int64_t kFewMissing = 3;

// Properties that distinguish ResNets.
struct ResNetKind {
  std::array<int, 4> blocks{};  // of each stage
  bool bottleneck = false;
  std::int64_t width = 0;       // channels of the first block's second convolution
  std::int64_t group_size = 0;  // input channels per output channel of that convolution
  bool deep_stem = false;
  bool squeezes = false;  // and excites
};

ResNetKind resnet_kind(const Shapes& tensors) {
  ResNetKind kind;
  for (std::size_t stage = 0; stage < kind.blocks.size(); ++stage) {
    while (
        tensors.contains(fmt::format("layer{}.{}.conv1.weight", stage + 1, kind.blocks[stage]))) {
      ++kind.blocks[stage];
    }
  }
  kind.bottleneck = tensors.contains("layer1.0.conv3.weight");
  if (const auto at = tensors.find("layer1.0.conv2.weight");
      at != tensors.end() && at->second.size() > 1) {
    kind.width = at->second[0];
    kind.group_size = at->second[1];
  }
  kind.deep_stem = tensors.contains("conv1.0.weight") || tensors.contains("conv1.3.weight");
  kind.squeezes = std::ranges::any_of(tensors, [](const auto& tensor) {
    return tensor.first.starts_with("layer") && tensor.first.find(".se.") != std::string::npos;
  });
  return kind;
}

// The depth, if the blocks are those of a network in the ResNet paper; otherwise 0.
int depth_of(const ResNetKind& kind) {
  struct Known {
    std::array<int, 4> blocks;
    bool bottleneck;
    int depth;
  };
  static constexpr std::array<Known, 5> kKnown = {{{{2, 2, 2, 2}, false, 18},
                                                   {{3, 4, 6, 3}, false, 34},
                                                   {{3, 4, 6, 3}, true, 50},
                                                   {{3, 4, 23, 3}, true, 101},
                                                   {{3, 8, 36, 3}, true, 152}}};
  const auto* const found = std::ranges::find_if(kKnown, [&](const Known& known) {
    return known.blocks == kind.blocks && known.bottleneck == kind.bottleneck;
  });
  return found != kKnown.end() ? found->depth : 0;
}

// The ResNet of 20 layers for images of 32 x 32.
bool is_resnet20(const ResNetKind& kind) {
  return kind.blocks == std::array{3, 3, 3, 0} && !kind.bottleneck && kind.width == 16;
}

std::string in_words(const ResNetKind& kind) {
  if (kind.deep_stem) return "a ResNet with a deep stem (resnet50d and the like)";
  if (is_resnet20(kind)) return "a ResNet-20";
  std::string words = fmt::format("a ResNet of {} blocks", fmt::join(kind.blocks, "+"));
  if (const int depth = depth_of(kind); depth > 0) {
    if (kind.bottleneck && kind.group_size != kind.width) {
      words = fmt::format("a ResNeXt-{} ({} channels in groups of {})", depth, kind.width,
                          kind.group_size);
    } else if (kind.bottleneck && kind.width > 64) {
      words = fmt::format("a wide ResNet-{} ({} channels instead of 64)", depth, kind.width);
    } else {
      words = fmt::format("a ResNet-{}", depth);
    }
  }
  if (kind.squeezes) words += " with squeeze and excitation";
  return words;
}

// Which of the networks that Rankine builds this is; empty: none.
std::string built_architecture(const Shapes& tensors) {
  if (tensors.contains(kOfGoogLeNet)) return "googlenet";
  if (tensors.contains(kOfInception)) return "inception_v3";
  const ResNetKind kind = resnet_kind(tensors);
  if (kind.deep_stem || kind.squeezes) return "";
  if (is_resnet20(kind)) return "resnet20";
  const int depth = depth_of(kind);
  if (depth == 18) return "resnet18";
  const bool plain = kind.group_size == kind.width && kind.width <= 64;
  return depth == 50 && plain ? "resnet50" : "";
}

Shapes shapes_of(const std::string& arch) {
  Shapes shapes;
  for (const NetworkTensor& tensor : network_tensors(arch)) shapes[tensor.name] = tensor.dims;
  return shapes;
}

Shapes shapes_of(const NamedTensors& tensors) {
  Shapes shapes;
  for (const auto& [name, tensor] : tensors) shapes[name] = tensor->dims;
  return shapes;
}

// "layer1" of "layer1.0.conv1.weight".
std::string module_of(const std::string& name) { return name.substr(0, name.find('.')); }

bool has_more_parts(const ResNetKind& kind, const ResNetKind& whole) {
  for (std::size_t stage = 0; stage < kind.blocks.size(); ++stage) {
    if (kind.blocks[stage] > whole.blocks[stage]) return true;
  }
  return kind.deep_stem || kind.squeezes;
}

// Whether the network has parts that `wanted` lacks. Missing or misshapen tensors are reported
// later, when tensors are taken; extra parts must be refused here, or they would be dropped
// silently and the rest taken for the whole network.
bool is_more_than(const ResNetKind& kind, const std::string& wanted) {
  const ResNetKind whole = resnet_kind(shapes_of(wanted));
  const bool other_width =
      kind.width > 0 && (kind.width != whole.width || kind.group_size != whole.group_size);
  return has_more_parts(kind, whole) || other_width || (kind.bottleneck && !whole.bottleneck);
}

// The network of which only a few tensors are missing or of another shape; empty: none.
std::string nearly_built(const Shapes& tensors) {
  const ResNetKind kind = resnet_kind(tensors);
  for (const std::string& arch : network_names()) {
    const Shapes whole = shapes_of(arch);
    const auto off = std::ranges::count_if(whole, [&](const auto& wanted) {
      if (wanted.second.empty()) return false;  // a counter
      const auto found = tensors.find(wanted.first);
      return found == tensors.end() || found->second != wanted.second;
    });
    if (off >= 1 && off <= kFewMissing && !has_more_parts(kind, resnet_kind(whole))) {
      return arch;
    }
  }
  return "";
}

}  // namespace

std::string architecture(const TensorFile& file, const NamedTensors& tensors,
                         const std::string& wanted) {
  const Shapes shapes = shapes_of(tensors);
  std::string built = built_architecture(shapes);
  if (built.empty()) built = nearly_built(shapes);
  if (!built.empty()) {
    if (wanted.empty() || built == wanted) return built;
    refuse(file, fmt::format("holds {}, not {}; leave --arch out", with_article(built), wanted));
  }
  const ResNetKind kind = resnet_kind(shapes);
  if (!wanted.empty() && !is_more_than(kind, wanted)) return wanted;
  refuse(file,
         fmt::format("holds {}{}; {} are built", in_words(kind),
                     wanted.empty() ? "" : ", not " + with_article(wanted), known_networks()));
}

std::string bias_of(const NetworkTensor& convolution) {
  return convolution.name.substr(0, convolution.name.rfind('.')) + ".bias";
}

std::vector<std::string> further_parts(const NamedTensors& tensors, const std::string& arch) {
  // Counters of batches and of a profiler's operations (thop) compute nothing.
  constexpr std::array<std::string_view, 3> kCounts = {"num_batches_tracked", "total_ops",
                                                       "total_params"};
  std::set<std::string> modules, known;
  for (const NetworkTensor& tensor : network_tensors(arch)) {
    modules.insert(module_of(tensor.name));
    known.insert(tensor.name);
    if (tensor.kind == Kind::kConvolution) known.insert(bias_of(tensor));
  }
  std::vector<std::string> further;
  for (const auto& [name, tensor] : tensors) {
    const bool counts = std::ranges::any_of(
        kCounts, [&, &of = name](std::string_view count) { return of.ends_with(count); });
    if (modules.contains(module_of(name)) && !known.contains(name) && !counts) {
      further.push_back(name);
    }
  }
  return further;
}

bool is_whole_network(const NamedTensors& tensors, const std::string& wanted) {
  const std::string built = built_architecture(shapes_of(tensors));
  if (built.empty() || (!wanted.empty() && built != wanted)) return false;
  const std::vector<NetworkTensor> network = network_tensors(built);
  return further_parts(tensors, built).empty() &&
         std::ranges::all_of(network, [&](const NetworkTensor& part) {
           if (part.kind == Kind::kCounter) return true;
           const auto found = tensors.find(part.name);
           return found != tensors.end() && found->second->dims == part.dims &&
                  is_real(found->second->type);
         });
}

}  // namespace rk
