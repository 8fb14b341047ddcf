#include "tests/golden_runner/network_model.h"
#include "engine/base/integers.h"

#include "engine/base/colours.h"
#include "engine/device/cuda/context.h"
#include "engine/device/pinned_buffer.h"
#include "layers/graphs/graph_runner.h"
#include "tests/support/nchw.h"
#include "tests/support/stored_images.h"
#include "training/model_io.h"

#include <algorithm>

namespace rk::golden {

NetworkModel::NetworkModel(const Context& context, const Settings& settings)
    : context_(context),
      program_(context, parameters_,
               {.gradients = settings.gradients,
                .input_gradient = settings.input_gradient,
                .keep_all = true}),
      network_(
          build_network(program_, settings.spec, settings.batch, settings.height, settings.width)),
      fused_(settings.spec.fuse) {
  if (context.on_gpu()) build_graphs(context, graphs_of(program_), {});  // side by side
  program_.plan();
}

void NetworkModel::load(const Checkpoint& weights) {
  load_parameters(weights, parameters_);
  parameters_.upload();
}

void NetworkModel::set_images(const std::vector<float>& nchw) {
  const Shape& shape = program_.shape(network_.input);
  const std::vector<float> colours = nchw_to_nhwc(nchw, kColours, shape[1] * shape[2]);
  // On a GPU the input is padded with channels of zeros up to the number that convolutions take.
  std::vector<float> nhwc(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t i = 0; i < std::ssize(colours); ++i) {
    nhwc[at(i / kColours * shape[3] + i % kColours)] = colours[at(i)];
  }
  put(as_stored(program_, network_.input, nhwc), program_.value(network_.input));
}

void NetworkModel::forward() {
  program_.forward();
  program_.count_forward();
  parameters_.download();
}

void NetworkModel::backward(const std::vector<float>& output_gradient) {
  put(output_gradient, program_.gradient(network_.embeddings));
  program_.backward();
  parameters_.download_gradients();
}

void NetworkModel::put(const std::vector<float>& values, float* to) const {
  if (!context_.on_gpu()) {
    std::ranges::copy(values, to);
    return;
  }
  const PinnedBuffer staged(values.size() * sizeof(float));
  std::ranges::copy(values, staged.as<float>());
  context_.upload(to, staged.as<float>(), staged.bytes());
  context_.synchronize();
}

std::vector<float> NetworkModel::fetch(const float* from, std::int64_t count) const {
  if (!context_.on_gpu()) return {from, from + count};
  std::vector<float> values(static_cast<std::size_t>(count));
  const PinnedBuffer staged(values.size() * sizeof(float));
  context_.download(staged.as<float>(), from, staged.bytes());
  context_.synchronize();
  std::copy_n(staged.as<float>(), values.size(), values.begin());
  return values;
}

std::vector<double> NetworkModel::read_flat(std::span<const float> flat,
                                            const std::string& name) const {
  for (std::size_t id = 0; id < parameters_.entries().size(); ++id) {
    const Parameters::Entry& entry = parameters_.entries()[id];
    if (entry.name != name) continue;
    std::vector<float> values(static_cast<std::size_t>(entry.elements()));
    parameters_.get(flat, static_cast<ParameterId>(id), values.data());
    return {values.begin(), values.end()};
  }
  return {};
}

std::vector<double> NetworkModel::parameter(const std::string& name) const {
  return read_flat(parameters_.values(), name);
}

std::vector<double> NetworkModel::parameter_gradient(const std::string& name) const {
  return read_flat(parameters_.gradients(), name);
}

std::vector<double> NetworkModel::running(const std::string& name) {
  for (std::size_t id = 0; id < parameters_.buffers().size(); ++id) {
    const Parameters::BufferEntry& entry = parameters_.buffers()[id];
    if (entry.name != name) continue;
    if (entry.counter) return {static_cast<double>(parameters_.counter(static_cast<BufferId>(id)))};
    const float* values = parameters_.buffer(static_cast<BufferId>(id));
    return {values, values + entry.elements};
  }
  return {};
}

std::optional<std::vector<double>> NetworkModel::activation(const std::string& name) const {
  const TensorId id = program_.find(name);
  if (id < 0) return std::nullopt;
  return value(id);
}

std::optional<std::vector<double>> NetworkModel::activation_gradient(
    const std::string& name) const {
  const TensorId id = program_.find(name);
  if (id < 0 || is_masked(id)) return std::nullopt;
  return gradient(id);
}

// In a fused program on a GPU, the first reader of a ReLU's output may store the gradient with the
// ReLU's mask applied already. Returns whether it does for tensor `id`.
bool NetworkModel::is_masked(TensorId id) const {
  if (!fused_ || !context_.on_gpu()) return false;
  for (std::size_t n = 0; n < program_.nodes().size(); ++n) {
    for (const NodeInput& input : program_.tape().links[n].inputs) {
      if (input.tensor == id) return input.masks_gradient;
    }
  }
  return false;
}

std::vector<double> NetworkModel::read(TensorId id, const float* stored) const {
  const Shape& shape = program_.shape(id);
  std::vector<float> values = from_stored(program_, id, fetch(stored, shape.elements()).data());
  if (shape.rank() == 4) values = nhwc_to_nchw(values, shape[3], shape[1] * shape[2]);
  return {values.begin(), values.end()};
}

}  // namespace rk::golden
