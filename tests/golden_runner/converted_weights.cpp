#include "tests/golden_runner/converted_weights.h"

#include "engine/base/error.h"
#include "engine/base/text_of.h"
#include "tests/golden_runner/network_cases.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/keras_writer.h"
#include "tests/support/weights/torch_writer.h"
#include "tests/support/weights/torchvision.h"
#include "weights/atomic_file.h"
#include "weights/foreign/weight_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

namespace rk::golden {
namespace {

namespace fs = std::filesystem;

// The tensors of torchvision's state_dict() with an embedding layer in place of `fc`.
std::vector<NamedShape> tensors_of(const std::string& arch, std::int64_t dim) {
  std::vector<NamedShape> all = torchvision_network(arch);
  const std::int64_t features = std::ranges::find(all, "fc.weight", &NamedShape::name)->dims[1];
  std::erase_if(all, [](const NamedShape& tensor) { return tensor.name.starts_with("fc."); });
  all.push_back({"embedding.weight", {dim, features}});
  all.push_back({"embedding.bias", {dim}});
  return all;
}

TorchContent torch_content(const std::vector<NamedShape>& tensors, const Generator& generator) {
  TorchContent content;
  for (const NamedShape& tensor : tensors) {
    if (tensor.dims.empty()) {
      add_counter(content, tensor.name, 0);
    } else {
      add_tensor(content, tensor.name, tensor.dims, generator.tensor(tensor.name, tensor.dims));
    }
  }
  return content;
}

// The Keras values that convert exactly to the generated ones. Means and biases are multiples of
// 2^-25 up to 1/4, so their sum is exact. The variance less the difference of the epsilons is
// rounded by less than half its last place; the conversion's addition rounds that away.
std::vector<float> keras_values(const Generator& generator, KerasGeneration generation,
                                const std::string& layer, const std::string& part,
                                const std::vector<std::int64_t>& dims) {
  const auto biases_of = [&](const std::string& convolution) {
    return generator.tensor(convolution + ".keras.running_mean", {dims.back()});
  };
  if (part == "bias") return biases_of(layer);
  if (part == "gamma") return generator.tensor(layer + ".weight", dims);
  if (part == "beta") return generator.tensor(layer + ".bias", dims);
  if (part == "mean") {
    const std::vector<KerasLayer> layers = keras_layers();
    const auto of = std::ranges::find(layers, layer, &KerasLayer::normalisation);
    const std::vector<float> biases = biases_of(of->convolution);
    std::vector<float> means = generator.tensor(layer + ".running_mean", dims);
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += biases[i];
    return means;
  }
  if (part == "variance") {
    const double epsilon = generation == KerasGeneration::kFirst ? 1e-3 : 1.001e-5;
    std::vector<float> variances = generator.tensor(layer + ".running_var", dims);
    for (float& v : variances) {
      v = static_cast<float>(static_cast<double>(v) - (epsilon - 1e-5));
    }
    return variances;
  }
  const std::int64_t places = dims[0] * dims[1], in = dims[2], out = dims[3];
  const std::vector<float> oihw = generator.tensor(layer + ".weight", {out, in, dims[0], dims[1]});
  std::vector<float> hwio(oihw.size());
  std::size_t at = 0;
  for (std::int64_t place = 0; place < places; ++place) {
    for (std::int64_t i = 0; i < in; ++i) {
      const std::int64_t from = layer == "conv1" ? in - 1 - i : i;  // BGR
      for (std::int64_t o = 0; o < out; ++o) {
        hwio[at++] = oihw[static_cast<std::size_t>((o * in + from) * places + place)];
      }
    }
  }
  return hwio;
}

// Returns the name of the first tensor that differs from the generated one; empty if none does.
std::string first_difference(const Checkpoint& read, const std::vector<NamedShape>& tensors,
                             const Generator& generator, bool embedding) {
  std::vector<float> values;
  for (const NamedShape& tensor : tensors) {
    if (!embedding && tensor.name.starts_with("embedding.")) continue;
    if (tensor.dims.empty()) {
      if (read.counter(tensor.name) != 0) return tensor.name;
      continue;
    }
    const std::vector<float> wanted = generator.tensor(tensor.name, tensor.dims);
    if (!read.has_weight({tensor.name, tensor.dims})) return tensor.name;
    values.resize(wanted.size());
    read.weight({tensor.name, tensor.dims}, values.data());
    if (std::memcmp(values.data(), wanted.data(), wanted.size() * sizeof(float)) != 0) {
      return tensor.name;
    }
  }
  return "";
}

}  // namespace

const Checkpoint& ConvertedWeights::of(const std::string& arch, std::int64_t dim,
                                       const Generator& generator, Report& report) {
  const std::string wanted = fmt::format("{} {} {}", arch, dim, generator.salt);
  if (wanted == made_) return *weights_;
  weights_.reset();
  const TemporaryFolder folder;
  const std::vector<NamedShape> tensors = tensors_of(arch, dim);
  const TorchContent content = torch_content(tensors, generator);

  // Writes a file, reads it as the programs do, and reports whether its tensors are the generated
  // ones.
  const auto take = [&](const std::string& kind, const std::string& file,
                        std::span<const std::byte> bytes) {
    const std::string path = folder.in(file);
    write_atomic(path, bytes);
    std::vector<std::string> said;
    auto read = std::make_unique<Checkpoint>(open_weights(path, "", said));
    fs::remove(path);
    const bool keras = kind.starts_with("Keras");
    std::string difference = first_difference(*read, tensors, generator, !keras);
    if (difference.empty() && keras && !read->model().stride_in_1x1) difference = "the stride";
    finish("networks/weights/" + arch + " " + kind, difference.empty(),
           difference.empty() ? "equal in every bit" : difference + " differs", report);
    return read;
  };
  take("torch stream", "w.pth", bytes_of(torch_stream(content)));
  take("torch tar", "w.pth.tar", bytes_of(torch_tar(content)));
  if (arch == "resnet50") {
    for (const auto& [generation, kind] : {std::pair{KerasGeneration::kFirst, "Keras, first names"},
                                           {KerasGeneration::kSecond, "Keras, second names"},
                                           {KerasGeneration::kThirdCounted, "Keras 3"}}) {
      take(kind, "w.h5",
           keras_resnet50(generation, [&, generation = generation](
                                          const std::string& layer, const std::string& part,
                                          const std::vector<std::int64_t>& dims) {
             return keras_values(generator, generation, layer, part, dims);
           }));
    }
  }
  // The way that a user's weights take: PyTorch's file, ours, safetensors, then a network.
  std::vector<std::byte> exported;
  {
    const auto zip = take("torch zip", "w.zip.pth", bytes_of(torch_zip(content)));
    exported = safetensors_bytes(network_weights(*zip));
  }
  weights_ = take("safetensors", "w.safetensors", exported);
  made_ = wanted;
  return *weights_;
}

}  // namespace rk::golden
