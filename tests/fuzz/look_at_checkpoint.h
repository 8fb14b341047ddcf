// What must hold of a checkpoint that was read without an InputError; asks it for everything that
// the programs do.
#pragma once

#include "engine/base/error.h"
#include "weights/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace rk {

// Names of tensors that a checkpoint may hold; the seeds' checkpoints hold these.
inline const std::vector<std::string> kTensorsToFuzz = {"conv1.weight", "bn1.num_batches_tracked",
                                                        "bn1.running_var", "proxies"};

inline void demand(bool held) {
  if (!held) std::abort();
}

inline void look_at_model(const ModelDescription& model) {
  demand(model.gem_p > 0);
  demand(model.pool == "avg" || model.pool == "max" || model.pool == "gem");
  demand(model.dim >= 0 && model.dim <= 1 << 16);
  demand(model.crop >= 1 && model.resize >= model.crop && model.resize <= 1 << 13);
  for (std::size_t c = 0; c < 3; ++c) {
    demand(std::isfinite(model.input_mean[c]));
    demand(std::isfinite(model.input_std[c]) && model.input_std[c] > 0);
  }
  demand(model.input_scale == 255 && model.channel_order == "RGB");
}

inline void look_at_run(const RunState& run) {
  for (const std::int64_t count : {run.step, run.epoch, run.batch, run.since_best,
                                   run.loss_scale.updates, run.loss_scale.good_steps}) {
    demand(count >= 0 && count <= std::int64_t{1} << 60);
  }
  demand(std::isfinite(run.best) && std::isfinite(run.loss_sum));
  demand(std::isfinite(run.loss_scale.scale) && run.loss_scale.scale >= 0);
}

// A tensor that exists must be finite, a variance not negative.
inline void look_at_weight(const Checkpoint& checkpoint, const std::string& name) {
  const auto dims = checkpoint.weight_dims(name);
  if (!dims) return;
  std::int64_t count = 1;
  for (const std::int64_t side : *dims) count *= side;
  std::vector<float> values(static_cast<std::size_t>(count));
  checkpoint.weight({name, *dims}, values.data());
  for (const float value : values) {
    demand(std::isfinite(value) && (value >= 0 || !name.ends_with("running_var")));
  }
}

// As any caller of memory() must, checks the number of rows before making room for them.
inline void look_at_memory(const Checkpoint& checkpoint) {
  const auto rows = static_cast<std::size_t>(checkpoint.memory_rows());
  if (rows > 1 << 12) return;
  constexpr std::int64_t kDim = 2;
  std::vector<float> embeddings(rows * kDim);
  std::vector<std::int64_t> labels(rows), image_ids(rows);
  checkpoint.memory(kDim, embeddings.data(), labels.data(), image_ids.data());
  for (const float value : embeddings) demand(std::isfinite(value));
}

// After a refused question the checkpoint must still answer the next one.
inline void look_at_checkpoint(const Checkpoint& checkpoint) {
  const auto unless_refused = [](const auto& question) {
    try {
      question();
    } catch (const InputError&) {
    }
  };
  look_at_model(checkpoint.model());
  look_at_run(checkpoint.run());
  for (const std::string& name : kTensorsToFuzz) {
    unless_refused([&] { look_at_weight(checkpoint, name); });
    unless_refused([&] { checkpoint.counter(name); });
    const TensorName tensor{name, {2, 2}};
    float values[4] = {};
    unless_refused([&] { checkpoint.loss_parameter(tensor, values); });
    for (const float value : values) demand(std::isfinite(value));
    unless_refused([&] { checkpoint.optimizer_state("exp_avg", tensor, values); });
  }
  unless_refused([&] { look_at_memory(checkpoint); });
  unless_refused([&] {
    checkpoint.require({{kTensorsToFuzz[0], {2, 2}}}, {kTensorsToFuzz[1]}, {"fc."});
  });
  unless_refused([&] { demand(checkpoint.network().size() == 64); });
}

}  // namespace rk
