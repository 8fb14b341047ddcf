#include "training/model_io.h"

#include "engine/base/error.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace rk {
namespace {

const std::string kEmbeddingLayer = "embedding.";

TensorName tensor_name(const Parameters::Entry& entry) {
  TensorName out{entry.name, {}};
  for (int axis = 0; axis < entry.shape.rank(); ++axis) out.dims.push_back(entry.shape[axis]);
  return out;
}

TensorName tensor_name(const Parameters::BufferEntry& entry) {
  return {entry.name, {entry.elements}};
}

bool of_loss(const Parameters::Entry& entry) { return entry.group == ParameterGroup::kProxies; }

std::int64_t largest(const Parameters& parameters) {
  std::int64_t elements = 0;
  for (const auto& entry : parameters.entries()) elements = std::max(elements, entry.elements());
  return elements;
}

// Refuses values that no optimizer can have produced: training from them would seem to diverge.
void check_state(const Checkpoint& checkpoint, std::string_view state,
                 const Parameters::Entry& entry, std::span<const float> values) {
  const bool of_squares = state == "exp_avg_sq";
  for (const float value : values) {
    if (std::isfinite(value) && !(of_squares && value < 0)) continue;
    fail<InputError>("{}: the optimizer's {} of {} holds {}; use an earlier checkpoint",
                     checkpoint.path(), state, entry.name, value);
  }
}

// f(id, entry) for every parameter.
template <class F> void for_each_parameter(const Parameters& parameters, F&& f) {
  for (std::size_t i = 0; i < parameters.entries().size(); ++i) {
    f(static_cast<ParameterId>(i), parameters.entries()[i]);
  }
}

void check(const Checkpoint& checkpoint, const Parameters& parameters,
           const std::vector<std::string>& optional) {
  std::vector<TensorName> weights;
  std::vector<std::string> counters;
  for (const auto& entry : parameters.entries()) {
    if (!of_loss(entry)) weights.push_back(tensor_name(entry));
  }
  for (const auto& entry : parameters.buffers()) {
    if (entry.counter) {
      counters.push_back(entry.name);
    } else {
      weights.push_back(tensor_name(entry));
    }
  }
  checkpoint.require(weights, counters, optional);
}

// Loads every tensor that the checkpoint has in the right shape; to be called after check().
void load(const Checkpoint& checkpoint, Parameters& parameters) {
  std::vector<float> canonical(static_cast<std::size_t>(largest(parameters)));
  for_each_parameter(parameters, [&](ParameterId id, const Parameters::Entry& entry) {
    if (of_loss(entry) || !checkpoint.has_weight(tensor_name(entry))) return;
    checkpoint.weight(tensor_name(entry), canonical.data());
    parameters.set(parameters.values(), id, canonical.data());
  });
  for (std::size_t i = 0; i < parameters.buffers().size(); ++i) {
    const auto& entry = parameters.buffers()[i];
    const auto id = static_cast<BufferId>(i);
    if (entry.counter) {
      parameters.counter(id) = checkpoint.counter(entry.name);
    } else {
      checkpoint.weight(tensor_name(entry), parameters.buffer(id));
    }
  }
}

}  // namespace

NetworkSpec network_spec(const ModelDescription& model, BatchNormMode mode) {
  NetworkSpec spec;
  spec.arch = model.arch;
  spec.dim = model.dim;
  spec.pool.kind = parse_global_pool(model.pool);
  spec.pool.gem.p = model.gem_p;
  spec.stride_in_1x1 = model.stride_in_1x1;
  spec.batchnorm = mode;
  return spec;
}

void save_parameters(const Parameters& parameters, CheckpointWriter& writer) {
  std::vector<float> canonical(static_cast<std::size_t>(largest(parameters)));
  for_each_parameter(parameters, [&](ParameterId id, const Parameters::Entry& entry) {
    parameters.get(parameters.values(), id, canonical.data());
    if (of_loss(entry)) {
      writer.loss_parameter(entry.name, tensor_name(entry).dims, canonical.data());
    } else {
      writer.weight(entry.name, tensor_name(entry).dims, canonical.data());
    }
  });
  for (std::size_t i = 0; i < parameters.buffers().size(); ++i) {
    const auto& entry = parameters.buffers()[i];
    const auto id = static_cast<BufferId>(i);
    if (entry.counter) {
      writer.counter(entry.name, parameters.counter(id));
    } else {
      writer.weight(entry.name, {entry.elements}, parameters.buffer(id));
    }
  }
}

void load_parameters(const Checkpoint& checkpoint, Parameters& parameters) {
  check(checkpoint, parameters, {});
  load(checkpoint, parameters);
}

void load_loss_parameters(const Checkpoint& checkpoint, Parameters& parameters) {
  std::vector<float> canonical(static_cast<std::size_t>(largest(parameters)));
  for_each_parameter(parameters, [&](ParameterId id, const Parameters::Entry& entry) {
    if (!of_loss(entry)) return;
    checkpoint.loss_parameter(tensor_name(entry), canonical.data());
    parameters.set(parameters.values(), id, canonical.data());
  });
}

bool load_starting_point(const Checkpoint& checkpoint, Parameters& parameters) {
  check(checkpoint, parameters, {kEmbeddingLayer});
  load(checkpoint, parameters);
  return std::all_of(parameters.entries().begin(), parameters.entries().end(),
                     [&](const auto& entry) {
                       return of_loss(entry) || checkpoint.has_weight(tensor_name(entry));
                     });
}

void save_optimizer(const Optimizer& optimizer, const Parameters& parameters,
                    CheckpointWriter& writer) {
  std::vector<float> canonical(static_cast<std::size_t>(largest(parameters)));
  std::vector<float> room;
  for (const Optimizer::State& state : optimizer.states()) {
    const std::span<const float> values = optimizer.on_host(state, room);
    for_each_parameter(parameters, [&](ParameterId id, const Parameters::Entry& entry) {
      parameters.get(values, id, canonical.data());
      writer.optimizer_state(std::string(state.name), entry.name, tensor_name(entry).dims,
                             canonical.data());
    });
  }
}

void load_optimizer(const Checkpoint& checkpoint, const Parameters& parameters,
                    Optimizer& optimizer) {
  std::vector<float> canonical(static_cast<std::size_t>(largest(parameters)));
  std::vector<float> room;
  for (const Optimizer::State& state : optimizer.states()) {
    const std::span<float> values = optimizer.on_host(state, room);
    for_each_parameter(parameters, [&](ParameterId id, const Parameters::Entry& entry) {
      checkpoint.optimizer_state(std::string(state.name), tensor_name(entry), canonical.data());
      check_state(checkpoint, state.name, entry,
                  {canonical.data(), static_cast<std::size_t>(entry.elements())});
      parameters.set(values, id, canonical.data());
    });
    optimizer.put_back(state, values);
  }
}

}  // namespace rk
