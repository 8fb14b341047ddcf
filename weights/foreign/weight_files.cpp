#include "weights/foreign/weight_files.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "weights/architectures/network_tensors.h"
#include "weights/architectures/registry.h"
#include "weights/foreign/model_text.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"
#include "weights/tensor_files/safetensors.h"

#include <algorithm>

namespace rk {

namespace {

[[noreturn]] void differs(const std::string& name, const std::string& what) {
  fail<InputError>("{}: {} was not written as it was read; give another format with --to", name,
                   what);
}

void check_values(std::span<const float> read, std::span<const float> wanted,
                  const std::string& file, const std::string& tensor) {
  // Compared as bytes: NaN equals itself, and 0 differs from -0.
  if (!std::ranges::equal(std::as_bytes(read), std::as_bytes(wanted))) differs(file, tensor);
}

// A seal proves that a file is complete, not who wrote it: throws InputError unless the file holds
// all tensors of its network and besides them only a classifier with any number of classes. Returns
// the float tensors in writing order.
std::vector<TensorName> checked_tensors(const Checkpoint& checkpoint,
                                        const std::vector<NetworkTensor>& network) {
  const ModelDescription& model = checkpoint.model();
  const std::int64_t features = network_features(model.arch);
  std::vector<TensorName> tensors;
  std::vector<std::string> counters;
  for (const NetworkTensor& tensor : network) {
    if (tensor.kind == NetworkTensor::Kind::kCounter) {
      counters.push_back(tensor.name);
    } else {
      tensors.push_back({tensor.name, tensor.dims});
    }
  }
  const auto layer = [&](const std::string& name, std::int64_t outputs) {
    tensors.push_back({name + ".weight", {outputs, features}});
    tensors.push_back({name + ".bias", {outputs}});
  };
  const auto classifier = checkpoint.weight_dims("fc.weight");
  if (classifier || checkpoint.weight_dims("fc.bias")) {
    const bool sized = classifier && !classifier->empty();
    layer("fc", sized ? std::max<std::int64_t>(1, classifier->front()) : 1);
  }
  if (model.dim > 0) layer("embedding", model.dim);
  checkpoint.require(tensors, counters);
  return tensors;
}

}  // namespace

std::vector<std::byte> checkpoint_bytes(const NetworkWeights& weights) {
  std::size_t bytes = std::size_t{16} << 20;  // other content, and the library's preallocation
  for (const NetworkWeights::Tensor& tensor : weights.tensors) bytes += tensor.values.size_bytes();
  CheckpointWriter writer(weights.model, bytes);
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    if (tensor.dims.empty()) {
      writer.counter(tensor.name, tensor.count);
    } else {
      writer.weight(tensor.name, tensor.dims, tensor.values.data());
    }
  }
  return writer.finish();
}

std::vector<std::byte> safetensors_bytes(const NetworkWeights& weights) {
  std::vector<NamedValues> tensors;
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    if (tensor.dims.empty()) {
      tensors.push_back(
          {tensor.name, ElementType::kI64, {}, std::as_bytes(std::span(&tensor.count, 1))});
    } else {
      tensors.push_back(
          {tensor.name, ElementType::kF32, tensor.dims, std::as_bytes(tensor.values)});
    }
  }
  return write_safetensors(std::move(tensors),
                           {{"format", "pt"}, {kModelKey, model_text(weights.model)}});
}

void check_checkpoint(std::span<const std::byte> file, const NetworkWeights& weights,
                      const std::string& name) {
  const Checkpoint read(name, file);
  if (model_text(read.model()) != model_text(weights.model)) differs(name, "the description");
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    if (!read.has_weight({tensor.name, tensor.dims})) differs(name, tensor.name);
    if (tensor.dims.empty()) {
      if (read.counter(tensor.name) != tensor.count) differs(name, tensor.name);
      continue;
    }
    std::size_t at = 0;
    read.visit_weight(tensor.name, [&](std::span<const float> values) {
      check_values(values, tensor.values.subspan(at, values.size()), name, tensor.name);
      at += values.size();
    });
  }
}

void check_safetensors(std::span<const std::byte> file, const NetworkWeights& weights,
                       const std::string& name) {
  const TensorFile tensors = read_safetensors(file, nullptr, name);
  const NetworkWeights read = network_weights(tensors, weights.model.arch);
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    const NetworkWeights::Tensor* other = read.find(tensor.name);
    if (other == nullptr || other->dims != tensor.dims || other->count != tensor.count) {
      differs(name, tensor.name);
    }
    check_values(other->values, tensor.values, name, tensor.name);
  }
  if (tensors.metadata.at(kModelKey) != model_text(weights.model)) differs(name, "the description");
}

NetworkWeights network_weights(const Checkpoint& checkpoint) {
  NetworkWeights out;
  out.model = checkpoint.model();
  out.names = "a checkpoint of Rankine";
  check_network(out.model, checkpoint.path());
  const std::vector<NetworkTensor> network = network_tensors(out.model.arch);
  const std::vector<TensorName> floats = checked_tensors(checkpoint, network);
  auto next = floats.begin();
  const auto add_next = [&] {
    const auto values = std::make_shared<std::vector<float>>(checkpoint.weight(next->name));
    out.tensors.push_back({next->name, next->dims, *values, 0, values});
    ++next;
  };
  for (const NetworkTensor& tensor : network) {
    if (tensor.kind == NetworkTensor::Kind::kCounter) {
      out.tensors.push_back({tensor.name, {}, {}, checkpoint.counter(tensor.name), nullptr});
    } else {
      add_next();
    }
  }
  while (next != floats.end()) add_next();
  return out;
}

Checkpoint open_weights(const std::string& path, const std::string& arch,
                        std::vector<std::string>& said) {
  require_checkpoint_file(path);
  if (is_sealed(path)) {
    Checkpoint ours(path);
    if (arch.empty() || arch == ours.model().arch) {
      said.push_back("wants " + input_text(ours.model()));
      return ours;
    }
    fail<UsageError>("--arch {}: {} holds {}; leave --arch out", arch, path,
                     with_article(ours.model().arch));
  }
  std::string digest;
  // Frees the file's bytes, unless the weights are views of them, before the checkpoint is made.
  const NetworkWeights weights = [&] {
    const TensorFile file = read_tensor_file(path);
    digest = file.sha256;
    return network_weights(file, arch);
  }();
  if (const auto found = findings(weights); !found.empty()) {
    refuse_findings(path, found, "take another file");
  }
  said.push_back(weights.summary());
  for (const std::string& line : weights.notes) said.push_back(line);
  if (!weights.unsaid.empty()) said.push_back(weights.unsaid);
  said.push_back("wants " + input_text(weights.model));
  return {Hdf5Reader(checkpoint_bytes(weights), path), digest};
}

}  // namespace rk
