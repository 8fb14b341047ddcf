#include "weights/foreign/keras_resnet.h"

#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "weights/architectures/network_tensors.h"
#include "weights/architectures/registry.h"
#include "weights/foreign/resnet_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

namespace rk {
namespace {

constexpr double kEpsilon = 1e-5;                      // torchvision's
constexpr double kFirstGenerationEpsilon = 1e-3;       // Keras's default, in fchollet's files
constexpr double kSecondGenerationEpsilon = 1.001e-5;  // in keras-applications
// The mean that Keras subtracts from BGR pixels 0 to 255, without dividing them; here in RGB order.
constexpr std::array<double, 3> kMean = {123.68, 116.779, 103.939};

// The parts of each layer ("kernel", "bias", "gamma", ...), by torchvision's layer name.
using LayerParts = std::map<std::string, std::map<std::string, const StoredTensor*>>;

struct Layers {
  LayerParts tensors;
  std::vector<StoredTensor> unread;  // stand for those that the file does not give, by their names
  std::vector<std::string> ignored;
  bool first_generation = false;
  std::string note;  // on a choice among several networks; else empty

  const StoredTensor* find(const std::string& layer, const std::string& part) const {
    const auto at = tensors.find(layer);
    if (at == tensors.end()) return nullptr;
    const auto found = at->second.find(part);
    return found == at->second.end() ? nullptr : found->second;
  }
};

// "conv1/conv1_W:0" and "conv1_conv/conv1_conv/kernel:0" -> "kernel".
std::string part_of(const std::string& leaf) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kParts = {{
      {"kernel", "kernel"},
      {"_W", "kernel"},
      {"bias", "bias"},
      {"_b", "bias"},
      {"gamma", "gamma"},
      {"beta", "beta"},
      {"moving_mean", "mean"},
      {"moving_variance", "variance"},
      {"running_mean", "mean"},
      // In the first generation; despite its name it holds the variance.
      {"running_std", "variance"},
  }};
  const std::string name = leaf.ends_with(":0") ? leaf.substr(0, leaf.size() - 2) : leaf;
  for (const auto& [ending, part] : kParts) {
    if (name.ends_with(ending)) return std::string(part);
  }
  return "";
}

// Keras 2.12 and later number the variables of a layer.
std::string part_of_number(const std::string& layer, const std::string& number) {
  const bool norm =
      layer.find("bn") != std::string::npos || layer.find("downsample.1") != std::string::npos;
  constexpr std::array<const char*, 4> kNorm = {"gamma", "beta", "mean", "variance"};
  constexpr std::array<const char*, 2> kLinear = {"kernel", "bias"};
  if (number.size() != 1 || number[0] < '0' || number[0] > '3') return "";
  const auto at = static_cast<std::size_t>(number[0] - '0');
  if (norm) return kNorm[at];
  return at < kLinear.size() ? kLinear[at] : "";
}

// Keras 2.12 to 2.14 keep a model's layers in this group, later versions in "layers".
constexpr std::string_view kDependencies = "_layer_checkpoint_dependencies";

bool lies_in(const std::string& model, std::string_view container) {
  return model.ends_with(container) &&
         (model.size() == container.size() || model[model.size() - container.size() - 1] == '/');
}

// A layer named by its class and its number among the layers of that class.
struct NumberedLayer {
  std::string kind;
  std::size_t number = 0;
};

// "conv2d_12" is number 12 of the kind "conv2d", "conv2d" its number 0.
NumberedLayer numbered_layer(const std::string& group) {
  const std::size_t digits = group.find_last_not_of("0123456789") + 1;
  if (digits == group.size() || digits < 2 || group[digits - 1] != '_') return {group};
  NumberedLayer layer{group.substr(0, digits - 1)};
  const char* end = group.data() + group.size();
  if (std::from_chars(group.data() + digits, end, layer.number).ec != std::errc()) return {};
  return layer;
}

// The torchvision name of a numbered layer: "conv2d_12" is convolution 12 of the network.
std::string counted_layer(const std::string& group, bool doubled) {
  auto [kind, number] = numbered_layer(group);
  if (doubled) number /= 2;
  if (kind == "dense") return number == 0 ? "fc" : "";
  std::vector<std::string> names;
  if (kind == "batch_normalization") names = keras_normalisations();
  if (kind == "conv2d") names = keras_convolutions();
  return number < names.size() ? names[number] : "";
}

// A tensor's name in parts.
struct KerasName {
  std::string model;  // the path to the layer: that of a model inside another, or empty
  std::string group;  // the layer's own
  std::string leaf;
  bool variables = false;  // whether the leaf is a number in the layer's group "vars"
};

std::optional<KerasName> keras_name(const std::string& name) {
  std::size_t last = name.rfind('/');
  if (last == std::string::npos) return std::nullopt;
  KerasName of;
  of.leaf = name.substr(last + 1);
  std::string path = name.substr(0, last);
  of.variables = path.ends_with("/vars");
  if (of.variables) path.resize(path.rfind('/'));
  last = path.rfind('/');
  of.group = path.substr(last + 1);
  const std::string own = of.group;
  // TensorFlow 1 numbers a name that was given before: "conv1/conv1_1/kernel:0".
  if (!of.variables && !name_of_keras_layer(own)) of.group = numbered_layer(own).kind;
  // Groups above that have the layer's name too are none of a model: "conv1_conv/conv1_conv".
  for (std::size_t at = 0; last != std::string::npos && at < last;) {
    const std::size_t end = path.find('/', at);
    const std::string above = path.substr(at, end - at);
    if (above != own && above != of.group) of.model += (of.model.empty() ? "" : "/") + above;
    at = end + 1;
  }
  return of;
}

// The models whose layers have every second number alone. Keras 2.12 and 2.13 list a layer with
// weights twice, and the name of the entry that they skip is counted, too.
std::set<std::string> doubled_models(const std::vector<const StoredTensor*>& tensors) {
  std::set<std::string> doubled, contiguous;
  for (const StoredTensor* tensor : tensors) {
    const std::optional<KerasName> name = keras_name(tensor->name);
    if (!name || !name->variables || !lies_in(name->model, kDependencies)) continue;
    const auto [kind, number] = numbered_layer(name->group);
    if (kind != "conv2d" && kind != "batch_normalization") continue;
    if (number % 2 == 1) contiguous.insert(name->model);
    if (kind == "conv2d" && number == 2) doubled.insert(name->model);
  }
  for (const std::string& model : contiguous) doubled.erase(model);
  return doubled;
}

// What a tensor is by its name.
struct KerasPart {
  std::string model;
  bool first_generation = false;
  std::string layer;  // torchvision's
  std::string part;
};

std::optional<KerasPart> keras_part(const std::string& tensor,
                                    const std::set<std::string>& doubled) {
  const std::optional<KerasName> name = keras_name(tensor);
  if (!name) return std::nullopt;
  const std::string& group = name->group;
  KerasPart of;
  of.model = name->model;
  // Models inside others count their layers from 0, too.
  if (name->variables && (lies_in(of.model, "layers") || lies_in(of.model, kDependencies))) {
    of.layer = counted_layer(group, doubled.contains(of.model));
  } else {
    of.layer = name_of_keras_layer(group).value_or("");
    of.first_generation = !group.starts_with("conv") || group == "conv1";
  }
  of.part = name->variables ? part_of_number(of.layer, name->leaf) : part_of(name->leaf);
  if (of.layer.empty() || of.part.empty()) return std::nullopt;
  return of;
}

std::set<std::string> layers_of_resnet50() {
  std::set<std::string> layers;
  for (const NetworkTensor& tensor : network_tensors("resnet50")) {
    layers.insert(tensor.name.substr(0, tensor.name.rfind('.')));
  }
  return layers;
}

// By how many the tensors of `known` layers are more than others.
std::ptrdiff_t fullness(const LayerParts& layers, const std::set<std::string>& known) {
  std::ptrdiff_t tensors = 0;
  for (const auto& [layer, parts] : layers) {
    tensors += known.contains(layer) ? std::ssize(parts) : -std::ssize(parts);
  }
  return tensors;
}

// The layers of the network in the file; of several, which differ in their models or in the
// generation of their names, of the fullest.
Layers layers_of(const TensorFile& file) {
  std::map<std::pair<std::string, bool>, LayerParts> networks;  // by model and generation
  std::map<std::string, LayerParts> heads;                      // by model
  Layers layers;
  for (const auto& [name, why] : file.unread) layers.unread.emplace_back().name = name;
  std::vector<const StoredTensor*> all;
  for (const StoredTensor& tensor : file.tensors) all.push_back(&tensor);
  for (const StoredTensor& tensor : layers.unread) all.push_back(&tensor);
  const std::set<std::string> doubled = doubled_models(all);
  for (const StoredTensor* tensor : all) {
    const std::optional<KerasPart> of = keras_part(tensor->name, doubled);
    if (!of) continue;
    LayerParts& parts =
        of->layer == "fc" ? heads[of->model] : networks[{of->model, of->first_generation}];
    parts[of->layer].emplace(of->part, tensor);
  }
  // Layers that only have the name of one of the network's are no network, if there is one.
  const auto is_network = [](const auto& network) {
    return network.second.contains("layer1.0.conv1");
  };
  const auto count = std::ranges::count_if(networks, is_network);
  if (count > 0) std::erase_if(networks, [&](const auto& other) { return !is_network(other); });
  const std::set<std::string> known = layers_of_resnet50();
  const auto chosen = std::ranges::max_element(
      networks, {}, [&](const auto& network) { return fullness(network.second, known); });
  if (chosen != networks.end()) {
    const auto& [model, first_generation] = chosen->first;
    layers.tensors = chosen->second;
    layers.first_generation = first_generation;
    if (count > 1) {
      layers.note = fmt::format("of {} networks in the file the one of {} was taken", count,
                                model.empty() ? "its root" : in_quotes(model));
    }
    // The network's own head, or one outside of all networks.
    std::set<std::string> models;
    for (const auto& network : networks) models.insert(network.first.first);
    for (const auto& [where, head] : heads) {
      if (where == model) layers.tensors["fc"] = head.at("fc");
      if (!models.contains(where)) layers.tensors.emplace("fc", head.at("fc"));
    }
  }
  std::set<const StoredTensor*> taken;
  for (const auto& [layer, parts] : layers.tensors) {
    for (const auto& [part, tensor] : parts) taken.insert(tensor);
  }
  for (const StoredTensor& tensor : file.tensors) {
    if (!taken.contains(&tensor)) layers.ignored.push_back(tensor.name);
  }
  return layers;
}

class KerasMapping {
 public:
  KerasMapping(const TensorFile& file, NetworkWeights& out)
      : file_(file), layers_(layers_of(file)), out_(out) {}

  void run() {
    check_network();
    out_.names = layers_.first_generation ? "the names of Keras's first ResNet-50"
                                          : "the names of Keras's ResNet-50";
    if (!layers_.note.empty()) out_.notes.push_back(layers_.note);
    out_.model.arch = "resnet50";
    out_.model.stride_in_1x1 = true;
    for (std::size_t c = 0; c < kMean.size(); ++c) {
      out_.model.input_mean[c] = kMean[c] / 255;
      out_.model.input_std[c] = 1.0 / 255;
    }
    std::string convolution;  // its bias goes into the next normalisation
    for (const NetworkTensor& wanted : network_tensors("resnet50")) {
      const std::string layer = wanted.name.substr(0, wanted.name.rfind('.'));
      if (wanted.kind == NetworkTensor::Kind::kConvolution) convolution = layer;
      add(wanted, layer, convolution);
    }
    add_classifier();
    if (!problems_.empty()) {
      refuse(file_, fmt::format("is not the whole of Keras's ResNet-50: {}; `convert {} --list` "
                                "shows what is there",
                                listed(problems_), printable(file_.path)));
    }
    out_.ignored.insert(out_.ignored.end(), layers_.ignored.begin(), layers_.ignored.end());
    out_.notes.emplace_back(
        "biases of convolutions went into the normalisations' means, epsilon into their variances, "
        "BGR became RGB");
  }

 private:
  void check_network() const {
    for (const StoredTensor& tensor : file_.tensors) {
      if (tensor.name.find("preact_bn") != std::string::npos ||
          tensor.name.find("post_bn") != std::string::npos) {
        refuse(file_, "holds a ResNet V2, another network; give the weights of ResNet50");
      }
    }
    const auto backend = file_.metadata.find("backend");
    const StoredTensor* stem = layers_.find("conv1", "kernel");
    const bool oihw = stem != nullptr && stem->dims == std::vector<std::int64_t>{64, 3, 7, 7};
    if (oihw || (backend != file_.metadata.end() && backend->second == "theano")) {
      refuse(file_,
             "holds kernels of Theano's order, turned by 180 degrees; take the TensorFlow "
             "file of the same weights (tf_dim_ordering_tf_kernels)");
    }
    check_depth();
    check_any();
  }

  // Of another network, every layer would be called missing.
  void check_any() const {
    const std::set<std::string> known = layers_of_resnet50();
    const auto found = [&](const auto& layer) { return known.contains(layer.first); };
    if (std::ranges::any_of(layers_.tensors, found)) return;
    std::vector<std::string> names;
    for (const StoredTensor& tensor : file_.tensors) names.push_back(printable(tensor.name));
    refuse(file_, fmt::format("holds no layer of Keras's ResNet-50, the one network that is read "
                              "from HDF5 of other programs, but {}; give its weights, or those of "
                              "PyTorch as .pth or safetensors",
                              names.empty() ? "no tensors" : listed(names)));
  }

  // Refuses deeper ResNets, which have all layers of ResNet-50 and more in the third or the second
  // of their four stages.
  void check_depth() const {
    std::set<std::string> known = layers_of_resnet50();
    known.insert("fc");
    int blocks = 0;
    while (layers_.tensors.contains(fmt::format("layer3.{}.conv1", blocks))) ++blocks;
    for (const auto& [layer, parts] : layers_.tensors) {
      if (known.contains(layer)) continue;
      const char* network = blocks == 23   ? "Keras's ResNet101"
                            : blocks == 36 ? "Keras's ResNet152"
                                           : "a deeper ResNet";
      refuse(file_, fmt::format("holds {}, a layer of {}, which ResNet50 has not; give the "
                                "weights of ResNet50",
                                printable(parts.begin()->second->name), network));
    }
  }

  bool is_unread(const StoredTensor& tensor) const { return file_.unread.contains(tensor.name); }

  // The values of a part, whose shape must be `dims` (in Keras's order); null, with the problem
  // noted, if it is missing or has another shape. Throws InputError if the file does not give it.
  const std::vector<float>* values(const std::string& layer, const std::string& part,
                                   const std::vector<std::int64_t>& dims) {
    const StoredTensor* tensor = layers_.find(layer, part);
    if (tensor != nullptr && is_unread(*tensor)) refuse(file_, file_.unread.at(tensor->name));
    std::string problem;
    if (tensor == nullptr) {
      problem = fmt::format("{} of {} is missing", part, layer);
    } else if (tensor->dims != dims) {
      problem = fmt::format("{} {} where {} is expected", printable(tensor->name),
                            shape_text(tensor->dims), shape_text(dims));
    }
    if (!problem.empty()) {
      problems_.push_back(problem);
      return nullptr;
    }
    const std::span<const float> read = float_values(*tensor, space_);
    if (read.data() != space_.data()) space_.assign(read.begin(), read.end());
    return &space_;
  }

  void add(const NetworkTensor& wanted, const std::string& layer, const std::string& convolution) {
    using Kind = NetworkTensor::Kind;
    switch (wanted.kind) {
      case Kind::kConvolution: add_kernel(wanted); return;
      case Kind::kCounter: out_.tensors.push_back({wanted.name, {}, {}, 0, nullptr}); return;
      case Kind::kScale:
        add_vector(wanted, layer, "gamma", [](double v, std::size_t) { return v; });
        return;
      case Kind::kShift:
        add_vector(wanted, layer, "beta", [](double v, std::size_t) { return v; });
        return;
      case Kind::kMean: {
        std::vector<float> bias(static_cast<std::size_t>(wanted.dims[0]), 0.0F);
        if (layers_.find(convolution, "bias") != nullptr) {
          if (const auto* read = values(convolution, "bias", wanted.dims)) bias = *read;
        }
        add_vector(wanted, layer, "mean",
                   [&](double v, std::size_t i) { return v - static_cast<double>(bias[i]); });
        return;
      }
      case Kind::kVariance: {
        const double epsilon =
            layers_.first_generation ? kFirstGenerationEpsilon : kSecondGenerationEpsilon;
        add_vector(wanted, layer, "variance",
                   [&](double v, std::size_t) { return v + (epsilon - kEpsilon); });
        return;
      }
    }
  }

  template <class F>
  void add_vector(const NetworkTensor& wanted, const std::string& layer, const std::string& part,
                  F&& f) {
    const std::vector<float>* read = values(layer, part, wanted.dims);
    if (read == nullptr) return;
    std::vector<float> out(read->size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(f(static_cast<double>((*read)[i]), i));
    }
    push(wanted.name, wanted.dims, std::move(out));
  }

  // HWIO -> OIHW; the stem's input channels from BGR to RGB.
  void add_kernel(const NetworkTensor& wanted) {
    const std::string layer = wanted.name.substr(0, wanted.name.rfind('.'));
    const std::int64_t out = wanted.dims[0], in = wanted.dims[1], h = wanted.dims[2],
                       w = wanted.dims[3];
    const std::vector<float>* read = values(layer, "kernel", {h, w, in, out});
    if (read == nullptr) return;
    std::vector<float> kernel(read->size());
    const bool stem = layer == "conv1";
    std::size_t at = 0;
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        const std::int64_t from = stem ? in - 1 - i : i;
        for (std::int64_t place = 0; place < h * w; ++place) {
          kernel[at++] = (*read)[static_cast<std::size_t>((place * in + from) * out + o)];
        }
      }
    }
    push(wanted.name, wanted.dims, std::move(kernel));
  }

  // (in, out) -> [out, in]; files without the top have no classifier.
  void add_classifier() {
    const StoredTensor* kernel = layers_.find("fc", "kernel");
    const StoredTensor* bias = layers_.find("fc", "bias");
    if (kernel == nullptr || bias == nullptr || is_unread(*kernel) || is_unread(*bias)) return;
    const std::int64_t in = network_features("resnet50");
    const std::int64_t out = bias->dims.size() == 1 ? bias->dims[0] : 0;
    if (kernel->dims != std::vector{in, out}) {
      out_.notes.push_back(fmt::format("{} {} is no layer on {} features and was left",
                                       printable(kernel->name), shape_text(kernel->dims), in));
      for (const StoredTensor* tensor : {kernel, bias}) out_.ignored.push_back(tensor->name);
      return;
    }
    const std::vector<float>* read = values("fc", "kernel", {in, out});
    if (read == nullptr) return;
    std::vector<float> weight(read->size());
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        weight[static_cast<std::size_t>(o * in + i)] =
            (*read)[static_cast<std::size_t>(i * out + o)];
      }
    }
    push("fc.weight", {out, in}, std::move(weight));
    const std::vector<float>* shift = values("fc", "bias", {out});
    if (shift != nullptr) push("fc.bias", {out}, *shift);
  }

  void push(const std::string& name, const std::vector<std::int64_t>& dims,
            std::vector<float> values) {
    const auto owner = std::make_shared<const std::vector<float>>(std::move(values));
    out_.tensors.push_back({name, dims, *owner, 0, owner});
  }

  const TensorFile& file_;
  Layers layers_;
  NetworkWeights& out_;
  std::vector<float> space_;
  std::vector<std::string> problems_;
};

}  // namespace

void map_keras_resnet(const TensorFile& file, NetworkWeights& out) {
  KerasMapping(file, out).run();
}

}  // namespace rk
