#include "weights/foreign/resnet_checkpoint.h"

#include "engine/error.h"
#include "weights/foreign/model_text.h"
#include "weights/foreign/safetensors.h"
#include "weights/resnet_tensors.h"
#include "weights/sealed_file.h"

namespace rk {

std::vector<std::byte> checkpoint_bytes(const ResNetWeights& weights) {
  CheckpointWriter writer(weights.model);
  for (const ResNetWeights::Tensor& tensor : weights.tensors) {
    if (tensor.dims.empty()) {
      writer.counter(tensor.name, tensor.count);
    } else {
      writer.weight(tensor.name, tensor.dims, tensor.values.data());
    }
  }
  return writer.finish();
}

std::vector<std::byte> safetensors_bytes(const ResNetWeights& weights) {
  std::vector<NamedValues> tensors;
  for (const ResNetWeights::Tensor& tensor : weights.tensors) {
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

ResNetWeights resnet_weights(const Checkpoint& checkpoint) {
  ResNetWeights out;
  out.model = checkpoint.model();
  out.names = "a checkpoint of Rankine";
  const auto add = [&](const std::string& name) {
    const auto dims = checkpoint.weight_dims(name);
    if (!dims) return;
    if (dims->empty()) {
      out.tensors.push_back({name, {}, {}, checkpoint.counter(name), nullptr});
      return;
    }
    StoredTensor shape;
    shape.dims = *dims;
    const auto values =
        std::make_shared<std::vector<float>>(static_cast<std::size_t>(shape.elements()));
    checkpoint.weight({name, *dims}, values->data());
    out.tensors.push_back({name, *dims, *values, 0, values});
  };
  for (const ResNetTensor& tensor : resnet_tensors(out.model.arch)) add(tensor.name);
  for (const char* name : {"fc.weight", "fc.bias", "embedding.weight", "embedding.bias"}) add(name);
  return out;
}

Checkpoint open_weights(const std::string& path, const std::string& arch,
                        std::vector<std::string>& said) {
  if (is_sealed(path)) {
    Checkpoint ours(path);
    if (arch.empty() || arch == ours.model().arch) return ours;
    fail<UsageError>("--arch {}: {} holds a {}; leave --arch out", arch, path, ours.model().arch);
  }
  const ResNetWeights weights = resnet_weights(read_tensor_file(path), arch);
  said.push_back(weights.summary());
  for (const std::string& line : weights.notes) said.push_back(line);
  return Checkpoint(path, checkpoint_bytes(weights));
}

}  // namespace rk
