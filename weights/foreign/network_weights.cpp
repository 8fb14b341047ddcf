#include "weights/foreign/network_weights.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "weights/architectures/network_tensors.h"
#include "weights/architectures/registry.h"
#include "weights/checkpoint.h"
#include "weights/foreign/keras_resnet.h"
#include "weights/foreign/model_text.h"
#include "weights/foreign/network_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
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

// Names of auxiliary classifiers, which are used only in classification training.
bool is_auxiliary(const std::string& name) {
  return name.starts_with("aux1.") || name.starts_with("aux2.") || name.starts_with("AuxLogits.");
}

using Kind = NetworkTensor::Kind;

bool is_counter(const StoredTensor& tensor) {
  return tensor.elements() == 1 && (is_integer(tensor.type) || is_real(tensor.type));
}

// A real number is one, too: .half() on a whole model converts its counters, and makes those above
// 65504 infinite. Null: more than an integer holds.
std::optional<std::int64_t> counted_batches(const StoredTensor& tensor) {
  if (is_integer(tensor.type)) return integer_values(tensor)[0];
  double value = 0;
  if (tensor.type == ElementType::kF64) {
    std::memcpy(&value, contiguous_bytes(tensor).data(), sizeof(value));
  } else {
    std::vector<float> space;
    value = static_cast<double>(float_values(tensor, space)[0]);
  }
  constexpr double kMost = 1e18;
  if (!(std::abs(value) < kMost)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(value));
}

void check_dim(std::int64_t dim, const std::string& layer, const std::string& path) {
  if (dim <= kMostDim) return;
  fail<InputError>(
      "{}: {} makes embeddings of {} numbers, more than {}; save the weights without this layer",
      path, layer, dim, kMostDim);
}

class Mapping {
 public:
  Mapping(const TensorFile& file, NamedTensors tensors, NetworkWeights& out)
      : file_(file), tensors_(std::move(tensors)), out_(out) {}

  void run() {
    for (const NetworkTensor& wanted : network_tensors(out_.model.arch)) take(wanted);
    for (const std::string& name : further_parts(tensors_, out_.model.arch)) {
      further_.push_back(printable(tensors_.at(name)->name));
    }
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
    if (folded_ > 0) {
      out_.notes.push_back(
          fmt::format("{} of convolutions went into the normalisations' means",
                      folded_ == 1 ? "1 bias" : fmt::format("{} biases", folded_)));
    }
    if (uncounted_ > 0) {
      out_.notes.push_back(fmt::format(
          "{} of batches held no finite number (float16 ends at 65504) and became 0, which changes "
          "no embedding",
          counted(uncounted_, "counter")));
    }
    for (const auto& [type, count] : widened_) {
      out_.notes.push_back(fmt::format("{} became float32", counted(count, type + " tensor")));
    }
  }

 private:
  void take(const NetworkTensor& wanted) {
    if (wanted.kind == Kind::kConvolution) bias_ = bias(wanted);
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
      if (!is_counter(tensor)) {
        mismatched_.push_back(fmt::format("{} {} {} where an integer is expected",
                                          printable(tensor.name), name_of(tensor.type),
                                          shape_text(tensor.dims)));
        return;
      }
      const std::optional<std::int64_t> count = counted_batches(tensor);
      if (!count) ++uncounted_;
      out_.tensors.push_back({wanted.name, {}, {}, count.value_or(0), nullptr});
    } else if (fits(tensor, wanted.dims)) {
      add(wanted.name, tensor);
      if (wanted.kind == Kind::kMean && bias_ != nullptr) fold_bias();
    }
  }

  bool fits(const StoredTensor& tensor, const std::vector<std::int64_t>& dims) {
    if (tensor.dims == dims && is_real(tensor.type)) return true;
    mismatched_.push_back(fmt::format("{} {} {} where {} is expected", printable(tensor.name),
                                      name_of(tensor.type), shape_text(tensor.dims),
                                      tensor.dims == dims ? "F32" : shape_text(dims)));
    return false;
  }

  // The convolution's bias; null: it has none.
  const StoredTensor* bias(const NetworkTensor& convolution) {
    const auto found = tensors_.find(bias_of(convolution));
    if (found == tensors_.end()) return nullptr;
    used_.insert(found->second);
    return fits(*found->second, {convolution.dims[0]}) ? found->second : nullptr;
  }

  // Takes the bias of the last convolution off the mean just added: that of the normalisation
  // behind it.
  void fold_bias() {
    NetworkWeights::Tensor& mean = out_.tensors.back();
    const auto folded =
        std::make_shared<std::vector<float>>(mean.values.begin(), mean.values.end());
    std::vector<float> space;
    const std::span<const float> bias = float_values(*bias_, space);
    for (std::size_t i = 0; i < folded->size(); ++i) (*folded)[i] -= bias[i];
    mean.values = *folded;
    mean.owner = folded;
    ++folded_;
  }

  // Takes a linear layer on the features, with any number of outputs, and zeros for a bias that it
  // does not have; leaves out one that does not fit.
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
    const bool without_bias = bias == tensors_.end();
    if (!without_bias &&
        (!is_real(bias->second->type) || bias->second->dims != std::vector{matrix.dims[0]})) {
      out_.notes.push_back(fmt::format("{} {} is no bias of {}, and both were left",
                                       printable(bias->second->name),
                                       shape_text(bias->second->dims), printable(matrix.name)));
      return;
    }
    if (layer == "embedding") check_dim(matrix.dims[0], printable(matrix.name), file_.path);
    used_.insert(&matrix);
    add(layer + ".weight", matrix);
    if (without_bias) {
      const auto zeros =
          std::make_shared<std::vector<float>>(static_cast<std::size_t>(matrix.dims[0]));
      out_.tensors.push_back({layer + ".bias", {matrix.dims[0]}, *zeros, 0, zeros});
      out_.notes.push_back(fmt::format("{} has no bias: zeros", printable(matrix.name)));
      return;
    }
    used_.insert(bias->second);
    add(layer + ".bias", *bias->second);
  }

  void add(const std::string& name, const StoredTensor& tensor) {
    auto space = std::make_shared<std::vector<float>>();
    NetworkWeights::Tensor out{name, tensor.dims, float_values(tensor, *space), 0, tensor.owner};
    if (out.values.data() == space->data()) out.owner = space;
    if (tensor.type != ElementType::kF32) ++widened_[std::string(name_of(tensor.type))];
    out_.tensors.push_back(std::move(out));
  }

  void report() const {
    std::vector<std::string> what;
    const auto add = [&](const char* words, const std::vector<std::string>& names) {
      if (names.empty()) return;
      what.push_back(fmt::format("{} {}: {}", names.size(), words, listed(names)));
    };
    add("missing", missing_);
    add("of another shape or type", mismatched_);
    add("of parts that it does not have", further_);
    if (what.empty()) return;
    if (!missing_.empty()) what.insert(what.end(), file_.notes.begin(), file_.notes.end());
    refuse(
        file_,
        fmt::format("its tensors are not those of {}: {}; `convert {} --list` shows what it holds",
                    with_article(out_.model.arch), fmt::join(what, "; "), printable(file_.path)));
  }

  const TensorFile& file_;
  NamedTensors tensors_;
  NetworkWeights& out_;
  std::set<const StoredTensor*> used_;
  std::vector<std::string> missing_, mismatched_, further_;
  const StoredTensor* bias_ = nullptr;  // of the last convolution; null: it has none
  int folded_ = 0;                      // biases
  int uncounted_ = 0;                   // counters
  std::map<std::string, int> widened_;
};

// Notes what the user must supply, since the file does not say how its images are prepared.
void note_unsaid(NetworkWeights& out, bool published) {
  if (out.model.dim > 0) {
    out.unsaid =
        "does not say how the network of its embedding pools and wants its images: avg and the "
        "usual mean, std and size are taken; `convert --like CHECKPOINT` takes a checkpoint's";
  } else if (!published && !out.model.arch.starts_with("resnet")) {
    out.unsaid =
        "may be one of the published weights that want mean and std 0.5 (torchvision's, "
        "TensorFlow's): then give `train` or `convert` --input-mean 0.5 --input-std 0.5";
  }
}

// Whether the name says that the file holds a part of a model:
// "model-00001-of-00002.safetensors".
bool is_named_as_part(const std::string& path) {
  const auto is_digit = [&](std::size_t i) {
    return i < path.size() && path[i] >= '0' && path[i] <= '9';
  };
  const std::size_t of = path.rfind("-of-");
  return of != std::string::npos && of > 0 && is_digit(of - 1) && is_digit(of + 4);
}

NetworkWeights whole_network(const TensorFile& file, const std::string& arch) {
  NetworkWeights out;
  out.model.dim = 0;
  out.model.source_sha256 = file.sha256;
  if (file.kind == TensorFile::Kind::kEmbeddings) {
    refuse(file,
           "is embeddings, not weights; give the checkpoint (best.h5) that they were made with");
  }
  if (file.kind == TensorFile::Kind::kKeras) {
    if (!arch.empty() && arch != "resnet50") {
      refuse(file, "holds Keras's ResNet-50, not " + arch + "; leave --arch out");
    }
    map_keras_resnet(file, out);
    return out;
  }
  if (const auto text = file.metadata.find(kModelKey); text != file.metadata.end()) {
    read_model_text(text->second, file.path, out.model);
  }
  ChosenNetwork chosen = choose_network(file, arch);
  out.names = chosen.names;
  if (!chosen.note.empty()) out.notes.push_back(chosen.note);
  out.model.arch = architecture(file, chosen.tensors, arch);
  if (file.metadata.contains(kModelKey)) {
    check_model(out.model, file.path);
    check_network(out.model, file.path);
  } else {
    out.model.crop = native_image_size(out.model.arch);
    out.model.resize = default_resize(out.model.crop);
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
  Mapping(file, std::move(chosen.tensors), out).run();
  if (!file.metadata.contains(kModelKey)) note_unsaid(out, published);
  return out;
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

void check_network(const ModelDescription& model, const std::string& path) {
  if (!is_known_network(model.arch)) {
    fail<InputError>("{}: its network is {}, known are {}; use another checkpoint", path,
                     in_quotes(model.arch), known_networks());
  }
  if (const std::int64_t least = least_image_size(model.arch); model.crop < least) {
    fail<InputError>(
        "{}: attribute crop is {}, but {} takes images of {} or more; use another checkpoint", path,
        model.crop, model.arch, least);
  }
}

void take_classifier_for_embedding(NetworkWeights& weights, const std::string& path,
                                   bool described) {
  const NetworkWeights::Tensor* embedding = weights.find("embedding.weight");
  const NetworkWeights::Tensor* classifier = weights.find("fc.weight");
  if (classifier == nullptr || embedding != nullptr) {
    fail<InputError>(
        "--fc embedding: {} has {}; leave --fc out", path,
        classifier == nullptr ? "no layer fc on its features" : "an embedding layer beside fc");
  }
  check_dim(classifier->dims[0], "fc", path);
  weights.model.dim = classifier->dims[0];
  if (!described) note_unsaid(weights, false);
  for (NetworkWeights::Tensor& tensor : weights.tensors) {
    if (tensor.name.starts_with("fc.")) tensor.name.replace(0, 2, "embedding");
  }
}

NetworkWeights network_weights(const TensorFile& file, const std::string& arch) {
  try {
    return whole_network(file, arch);
  } catch (const InputError& error) {
    if (!is_named_as_part(file.path)) throw;
    fail<InputError>(
        "{} (it is one part of a model in several files: join their tensors in one file)",
        error.what());
  }
}

std::vector<std::string> findings(const NetworkWeights& weights) {
  std::vector<std::string> lines;
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    const auto bad = std::count_if(tensor.values.begin(), tensor.values.end(),
                                   [](float v) { return !std::isfinite(v); });
    if (bad > 0)
      lines.push_back(fmt::format("{}: {} not finite", tensor.name, counted(bad, "value")));
    const auto large = std::count_if(tensor.values.begin(), tensor.values.end(), [](float v) {
      return std::isfinite(v) && std::abs(v) > kLargestParameter;
    });
    const bool running = tensor.name.find(".running_") != std::string::npos;
    if (large > 0 && !running) {
      lines.push_back(fmt::format("{}: {} beyond {:g}", tensor.name, counted(large, "value"),
                                  kLargestParameter));
    }
    if (!tensor.name.ends_with("running_var")) continue;
    const auto negative =
        std::count_if(tensor.values.begin(), tensor.values.end(), [](float v) { return v < 0; });
    if (negative > 0)
      lines.push_back(fmt::format("{}: {} negative", tensor.name, counted(negative, "value")));
  }
  return lines;
}

void refuse_findings(const std::string& path, const std::vector<std::string>& found,
                     const std::string& advice) {
  fail<InputError>("{}: {} with values that no training can begin with ({}{}); {}", printable(path),
                   counted(found.size(), "tensor"), found[0], found.size() > 1 ? ", ..." : "",
                   advice);
}

}  // namespace rk
