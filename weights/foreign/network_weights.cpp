#include "weights/foreign/network_weights.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "weights/architectures/network_tensors.h"
#include "weights/architectures/registry.h"
#include "weights/foreign/keras_resnet.h"
#include "weights/foreign/model_text.h"
#include "weights/foreign/resnet_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace rk {
namespace {

// Published files that need a non-default image preparation and do not state it.
struct Published {
  std::string_view digest;  // the first digits of the file's SHA-256
  const char* name;
  std::int64_t resize;
  // torchvision's transform_input: values in [-1, 1) instead of ImageNet's mean and std.
  bool halves = false;
};
constexpr std::array<Published, 4> kPublished = {
    {{"11ad3fa6", "torchvision's ResNet-50 IMAGENET1K_V2", 232},
     {"1378be20", "torchvision's GoogLeNet IMAGENET1K_V1", 256, true},
     {"0cc3c7bd", "torchvision's Inception-v3 IMAGENET1K_V1", 342, true},
     {"1a9a5a14", "torchvision's Inception-v3 IMAGENET1K_V1", 342, true}}};

using Kind = NetworkTensor::Kind;
using Named = std::map<std::string, const StoredTensor*>;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

const std::string kOfResNet = "layer1.0.conv1.weight";
const std::string kEmbedding = "embedding.weight";
const std::string kOfGoogLeNet = "inception3a.branch1.conv.weight";
const std::string kOfInception = "Mixed_5b.branch1x1.conv.weight";
// A network of which no more tensors are missing is told by what is missing.
constexpr std::int64_t kFewMissing = 3;

// Names of auxiliary classifiers, which are used only in classification training.
bool is_auxiliary(const std::string& name) {
  return name.starts_with("aux1.") || name.starts_with("aux2.") || name.starts_with("AuxLogits.");
}

[[noreturn]] void refuse(const TensorFile& file, const std::string& what) {
  fail<InputError>("{}: {}", printable(file.path), what);
}

// Whether `words` occurs in `prefix` as whole words: "model_ema." holds "ema", "semantic_encoder."
// does not.
bool holds_words(std::string_view prefix, std::string_view words) {
  constexpr std::string_view kBetween = "./_";
  for (std::size_t at = prefix.find(words); at != std::string_view::npos;
       at = prefix.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if ((at == 0 || kBetween.find(prefix[at - 1]) != std::string_view::npos) &&
        (end == prefix.size() || kBetween.find(prefix[end]) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

// The preference of a network by its prefix; lower is better.
int rank_of(const std::string& prefix) {
  constexpr std::array<std::string_view, 9> kOrder = {
      "ema", "state_dict", "model", "encoder_q", "teacher", "", "student", "encoder_k", "momentum"};
  // Words of the less preferred networks take precedence.
  for (const std::size_t last : {8U, 7U, 6U}) {
    if (holds_words(prefix, kOrder[last])) return static_cast<int>(last);
  }
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    if (!kOrder[i].empty() && holds_words(prefix, kOrder[i])) return static_cast<int>(i);
  }
  return 5;
}

// A naming scheme of tensors.
struct Dialect {
  const char* whose;
  std::vector<std::string> marks;          // ends of names that no other dialect has
  std::vector<std::string> further_marks;  // for files in which those are missing
  std::optional<std::string> (*rename)(const std::string&);  // into torchvision's
};
const std::array<Dialect, 3> kDialects = {
    {{"torchvision's names",
      {kOfResNet, kOfGoogLeNet, kOfInception},
      {"layer1.0.conv2.weight", "inception3a.branch1.bn.weight", "Mixed_5b.branch1x1.bn.weight"},
      [](const std::string& name) { return std::optional(name); }},
     // Whole models have the prefix `resnet.`, and the classifier outside it.
     {"the names of Hugging Face transformers",
      {"resnet.encoder.stages.0.layers.0.layer.0.convolution.weight",
       "encoder.stages.0.layers.0.layer.0.convolution.weight"},
      {"resnet.encoder.stages.0.layers.0.layer.1.convolution.weight",
       "encoder.stages.0.layers.0.layer.1.convolution.weight"},
      name_of_transformers},
     {"the names of NVIDIA's examples",
      {"layers.0.0.conv1.weight"},
      {"layers.0.0.conv2.weight"},
      name_of_nvidia}}};

// What stands before these marks in the file's names, the most preferred first.
std::vector<std::string> prefixes(const Named& tensors, const std::vector<std::string>& marks) {
  std::vector<std::string> found;
  for (const auto& [name, tensor] : tensors) {
    for (const std::string& mark : marks) {
      if (!name.ends_with(mark)) continue;
      const std::string prefix = name.substr(0, name.size() - mark.size());
      if (!prefix.empty() && prefix.back() != '.' && prefix.back() != '/') continue;
      found.push_back(prefix);
      break;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return rank_of(a) != rank_of(b) ? rank_of(a) < rank_of(b) : a.size() < b.size();
  });
  return found;
}

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
  kind.squeezes = std::ranges::any_of(
      tensors, [](const auto& tensor) { return tensor.first.find(".se.") != std::string::npos; });
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

// `wanted`: the network named by the user, or empty. If the network cannot be detected but may be a
// damaged `wanted`, `wanted` is returned, so that its missing tensors are named later.
std::string architecture(const TensorFile& file, const Named& tensors, const std::string& wanted) {
  Shapes shapes;
  for (const auto& [name, tensor] : tensors) shapes[name] = tensor->dims;
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

// Also accepts real numbers: .half() on a whole model converts its counters too.
std::optional<std::int64_t> counted_batches(const StoredTensor& tensor) {
  if (tensor.elements() != 1) return std::nullopt;
  if (is_integer(tensor.type)) return integer_values(tensor)[0];
  if (!is_real(tensor.type)) return std::nullopt;
  std::vector<float> space;
  const float value = float_values(tensor, space)[0];
  constexpr float kMost = 1e18F;
  if (!(std::abs(value) < kMost)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(value));
}

class Mapping {
 public:
  Mapping(const TensorFile& file, Named tensors, NetworkWeights& out)
      : file_(file), tensors_(std::move(tensors)), out_(out) {}

  void run() {
    for (const NetworkTensor& wanted : network_tensors(out_.model.arch)) take(wanted);
    take_head("fc", out_.model.arch);
    take_head("embedding", out_.model.arch);
    report();
    if (const auto* embedding = out_.find("embedding.weight")) out_.model.dim = embedding->dims[0];
    int auxiliary = 0;
    for (const auto& [name, tensor] : tensors_) {
      if (used_.contains(tensor)) continue;
      out_.ignored.push_back(tensor->name);
      if (is_auxiliary(name)) ++auxiliary;
    }
    if (auxiliary > 0) {
      out_.notes.push_back(
          fmt::format("left out: {} of auxiliary classifiers, for which an embedding has no use",
                      counted(auxiliary, "tensor")));
    }
    for (const auto& [type, count] : widened_) {
      out_.notes.push_back(fmt::format("{} became float32", counted(count, type + " tensor")));
    }
  }

 private:
  void take(const NetworkTensor& wanted) {
    const auto found = tensors_.find(wanted.name);
    if (found == tensors_.end()) {
      // Files from before PyTorch 0.4.1 have no batch counters.
      if (wanted.kind == Kind::kCounter) {
        out_.tensors.push_back({wanted.name, {}, {}, 0, nullptr});
      } else {
        missing_.push_back(wanted.name);
      }
      return;
    }
    const StoredTensor& tensor = *found->second;
    used_.insert(&tensor);
    if (wanted.kind == Kind::kCounter) {
      const std::optional<std::int64_t> count = counted_batches(tensor);
      if (!count) {
        mismatched_.push_back(fmt::format("{} {} {} where an integer is expected",
                                          printable(tensor.name), name_of(tensor.type),
                                          shape_text(tensor.dims)));
        return;
      }
      out_.tensors.push_back({wanted.name, {}, {}, *count, nullptr});
    } else if (tensor.dims != wanted.dims || !is_real(tensor.type)) {
      mismatched_.push_back(fmt::format("{} {} {} where {} is expected", printable(tensor.name),
                                        name_of(tensor.type), shape_text(tensor.dims),
                                        shape_text(wanted.dims)));
    } else {
      add(wanted.name, tensor);
    }
  }

  // Takes a linear layer on the features, with any number of outputs; leaves out one that does not
  // fit.
  void take_head(const std::string& layer, const std::string& arch) {
    const auto weight = tensors_.find(layer + ".weight"), bias = tensors_.find(layer + ".bias");
    if (weight == tensors_.end()) return;
    const StoredTensor& matrix = *weight->second;
    if (!is_real(matrix.type) || matrix.dims.size() != 2 || matrix.dims[0] < 1 ||
        matrix.dims[1] != network_features(arch)) {
      out_.notes.push_back(fmt::format("{} {} is no layer on {} features and was left",
                                       printable(matrix.name), shape_text(matrix.dims),
                                       network_features(arch)));
      return;
    }
    const bool with_bias = bias != tensors_.end() && is_real(bias->second->type) &&
                           bias->second->dims == std::vector{matrix.dims[0]};
    if (!with_bias) {
      out_.notes.push_back(fmt::format("{} has no bias and was left", printable(matrix.name)));
      return;
    }
    for (const StoredTensor* tensor : {&matrix, bias->second}) {
      used_.insert(tensor);
      add(layer + (tensor == &matrix ? ".weight" : ".bias"), *tensor);
    }
  }

  void add(const std::string& name, const StoredTensor& tensor) {
    auto space = std::make_shared<std::vector<float>>();
    NetworkWeights::Tensor out{name, tensor.dims, float_values(tensor, *space), 0, tensor.owner};
    if (out.values.data() == space->data()) out.owner = space;
    if (tensor.type != ElementType::kF32) ++widened_[std::string(name_of(tensor.type))];
    out_.tensors.push_back(std::move(out));
  }

  void report() const {
    if (missing_.empty() && mismatched_.empty()) return;
    std::string what;
    if (!missing_.empty()) {
      what = fmt::format("{} missing: {}", missing_.size(), listed(missing_));
    }
    if (!mismatched_.empty()) {
      what += fmt::format("{}{} of another shape or type: {}", what.empty() ? "" : "; ",
                          mismatched_.size(), listed(mismatched_));
    }
    refuse(file_, fmt::format("its tensors are not those of {}: {}; --list shows all of them",
                              with_article(out_.model.arch), what));
  }

  const TensorFile& file_;
  Named tensors_;
  NetworkWeights& out_;
  std::set<const StoredTensor*> used_;
  std::vector<std::string> missing_, mismatched_;
  std::map<std::string, int> widened_;
};

// The prefix of the embedding layer of the network with `prefix`: `prefix` itself, or that of an
// enclosing module that holds both ("backbone.conv1.weight", "embedding.weight").
std::string embedding_prefix(const Named& tensors, const std::string& prefix) {
  std::string above = prefix;
  while (!tensors.contains(above + kEmbedding) && !above.empty()) {
    above.pop_back();
    above.resize(above.find_last_of("./") + 1);
  }
  return tensors.contains(above + kEmbedding) ? above : prefix;
}

// The networks of one dialect in a file, by the prefixes of their names.
struct FoundNetworks {
  const Dialect* dialect;
  std::vector<std::string> prefixes;
};

FoundNetworks find_networks(const TensorFile& file, const Named& tensors) {
  for (const auto marks : {&Dialect::marks, &Dialect::further_marks}) {
    for (const Dialect& dialect : kDialects) {
      std::vector<std::string> found = prefixes(tensors, dialect.*marks);
      if (!found.empty()) return {&dialect, std::move(found)};
    }
  }
  if (tensors.empty()) refuse(file, "holds no tensors; save model.state_dict()");
  std::vector<std::string> some;
  for (const StoredTensor& tensor : file.tensors) {
    if (some.size() < 3) some.push_back(printable(tensor.name));
  }
  refuse(file, fmt::format("holds {} ({}{}), but no network whose names are known; --list "
                           "shows all of them",
                           counted(file.tensors.size(), "tensor"), fmt::join(some, ", "),
                           file.tensors.size() > some.size() ? ", ..." : ""));
}

// The file's tensors by torchvision's names; sets out.names and adds notes.
Named torchvision_names(const TensorFile& file, NetworkWeights& out) {
  Named tensors;
  for (const StoredTensor& tensor : file.tensors) tensors.emplace(tensor.name, &tensor);
  const auto [dialect, found] = find_networks(file, tensors);
  const std::string& prefix = found[0];
  out.names = dialect->whose + (prefix.empty() ? "" : " behind " + in_quotes(prefix));
  if (found.size() > 1) {
    out.notes.push_back(fmt::format("of {} networks in the file the one of '{}' was taken",
                                    found.size(), printable(prefix)));
  }
  // Contrastive training replaces the classifier by a projection of its own.
  const bool projects = holds_words(prefix, "encoder_q") || holds_words(prefix, "encoder_k");
  const std::string beside = embedding_prefix(tensors, prefix);
  Named mine;
  for (const auto& [name, tensor] : tensors) {
    const std::string& front = name.starts_with(beside + "embedding.") ? beside : prefix;
    const std::string rest = name.starts_with(front) ? name.substr(front.size()) : "";
    const bool projection = projects && rest.starts_with("fc.");
    const bool of_it = !rest.empty() && !projection;
    mine.emplace(of_it ? dialect->rename(rest).value_or(rest) : "//" + name, tensor);
  }
  return mine;
}

// Notes what the user must supply, since the file does not say how its images are prepared.
void note_unsaid(NetworkWeights& out, bool published) {
  if (out.model.dim > 0) {
    out.unsaid =
        "does not say how the network of its embedding pools and wants its images: avg and the "
        "usual mean, std and size are taken; `convert --like CHECKPOINT` takes a checkpoint's";
  } else if (!published && !out.model.arch.starts_with("resnet")) {
    out.unsaid =
        "may be one of the published weights that want mean and std 0.5 (torchvision's, "
        "TensorFlow's): then give train or convert --input-mean 0.5 --input-std 0.5";
  }
}

}  // namespace

const NetworkWeights::Tensor* NetworkWeights::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string NetworkWeights::summary() const {
  std::string text = fmt::format("{}: {} of {}", names, counted(tensors.size(), "tensor"),
                                 with_article(model.arch));
  if (const Tensor* classifier = find("fc.weight")) {
    text += fmt::format(", with a classifier of {}", counted(classifier->dims[0], "class"));
  }
  if (const Tensor* embedding = find("embedding.weight")) {
    text += fmt::format(", with an embedding layer of {}", embedding->dims[0]);
  }
  if (!ignored.empty()) text += fmt::format("; {} left out", counted(ignored.size(), "other"));
  return text;
}

NetworkWeights network_weights(const TensorFile& file, const std::string& arch) {
  NetworkWeights out;
  out.model.dim = 0;
  out.model.source_sha256 = file.sha256;
  if (file.format == kEmbeddingsFormat) {
    refuse(file,
           "is embeddings, not weights; give the checkpoint (best.h5) that they were made with");
  }
  if (is_keras(file)) {
    if (!arch.empty() && arch != "resnet50") {
      refuse(file, "holds Keras's ResNet-50, not " + arch + "; leave --arch out");
    }
    map_keras_resnet(file, out);
    return out;
  }
  if (const auto text = file.metadata.find(kModelKey); text != file.metadata.end()) {
    read_model_text(text->second, out.model);
    check_model(out.model, file.path);
  }
  Named tensors = torchvision_names(file, out);
  out.model.arch = architecture(file, tensors, arch);
  if (!file.metadata.contains(kModelKey)) {
    // The same ratio as 224 of 256 for the other networks.
    if (out.model.arch == "inception_v3") {
      out.model.crop = 299;
      out.model.resize = 342;
    } else if (out.model.arch == "resnet20") {
      out.model.crop = 32;
      out.model.resize = 37;
    }
  }
  bool published = false;
  for (const Published& known : kPublished) {
    if (!file.sha256.starts_with(known.digest)) continue;
    published = true;
    out.model.resize = known.resize;
    if (known.halves) {
      out.model.input_mean.fill(0.5);
      out.model.input_std.fill(0.5);
    }
    out.notes.push_back(
        fmt::format("is {}, whose images have a short side of {}", known.name, known.resize));
  }
  Mapping(file, std::move(tensors), out).run();
  if (!file.metadata.contains(kModelKey)) note_unsaid(out, published);
  return out;
}

std::vector<std::string> findings(const NetworkWeights& weights) {
  std::vector<std::string> lines;
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    const auto bad = std::count_if(tensor.values.begin(), tensor.values.end(),
                                   [](float v) { return !std::isfinite(v); });
    if (bad > 0)
      lines.push_back(fmt::format("{}: {} not finite", tensor.name, counted(bad, "value")));
    if (!tensor.name.ends_with("running_var")) continue;
    const auto negative =
        std::count_if(tensor.values.begin(), tensor.values.end(), [](float v) { return v < 0; });
    if (negative > 0)
      lines.push_back(fmt::format("{}: {} negative", tensor.name, counted(negative, "value")));
  }
  return lines;
}

}  // namespace rk
