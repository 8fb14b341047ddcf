// Ten optimizer steps of a network from its generated start; step t sees images and dL/dE of key
// "steps.<case>:<t>". Two groups: the backbone at lr, embedding.* at lr * embedding_rate.
#include "tests/golden_runner/comparison.h"
#include "tests/golden_runner/network_cases.h"
#include "tests/golden_runner/network_model.h"

#include "engine/base/error.h"

#include <fmt/format.h>

namespace rk::golden {
namespace {

NetworkModel::Settings settings_of(const Hdf5Reader& file, const std::string& group) {
  NetworkModel::Settings settings;
  settings.spec.arch = text_of(file, group, "arch");
  settings.spec.dim = integer_of(file, group, "dim");
  settings.spec.batchnorm =
      text_of(file, group, "mode") == "train" ? BatchNormMode::kBatch : BatchNormMode::kRunning;
  settings.batch = integer_of(file, group, "batch");
  settings.height = integer_of(file, group, "height");
  settings.width = integer_of(file, group, "width");
  settings.gradients = true;
  return settings;
}

// Batch norm that uses the stored statistics must not change them; its cases have no table of them.
void compare_running(const std::string& group, const std::string& when, BatchNormMode mode,
                     const Generator& generator, NetworkModel& model, Comparison& comparison) {
  const auto generated = [&](const std::string& name) {
    const auto elements = static_cast<std::int64_t>(model.running(name).size());
    const std::vector<float> values = generator.tensor(name, {elements});
    return std::vector<double>(values.begin(), values.end());
  };
  if (mode == BatchNormMode::kBatch) {
    comparison.compare_table(
        when + " running", group + "/running",
        [&](const std::string& name) { return model.running(name); }, generated);
    return;
  }
  for (const Parameters::BufferEntry& entry : model.parameters().buffers()) {
    if (entry.counter) continue;
    comparison.require(model.running(entry.name) == generated(entry.name),
                       fmt::format("{}: {} moved", when, entry.name));
  }
}

void compare_state(const std::string& group, const std::string& when, BatchNormMode mode,
                   const Generator& generator, NetworkModel& model, Comparison& comparison) {
  comparison.compare_table(
      when + " params", group + "/params",
      [&](const std::string& name) { return model.parameter(name); },
      [&](const std::string& name) {
        for (const Parameters::Entry& entry : model.parameters().entries()) {
          if (entry.name != name) continue;
          std::vector<std::int64_t> dims;
          for (int axis = 0; axis < entry.shape.rank(); ++axis) dims.push_back(entry.shape[axis]);
          const std::vector<float> values = generator.tensor(name, dims);
          return std::vector<double>(values.begin(), values.end());
        }
        return std::vector<double>{};
      });
  compare_running(group, when, mode, generator, model, comparison);
}

}  // namespace

OptimizerParams optimizer_params(const Hdf5Reader& file, const std::string& group,
                                 const std::string& kind) {
  OptimizerParams params;
  if (kind == "adam") {
    params.kind = OptimizerKind::kAdam;
  } else if (kind == "adamw") {
    params.kind = OptimizerKind::kAdamW;
  } else if (kind == "sgd") {
    params.kind = OptimizerKind::kSgd;
  } else {
    fail<InputError>("{}: {} has optimizer {}; adam, adamw and sgd are known", file.name(), group,
                     kind);
  }
  params.beta1 = number_of(file, group, "betas", params.beta1, 0);
  params.beta2 = number_of(file, group, "betas", params.beta2, 1);
  params.eps = number_of(file, group, "eps", params.eps);
  params.momentum = number_of(file, group, "momentum", 0);
  params.nesterov = number_of(file, group, "nesterov", 0) != 0;
  return params;
}

void run_steps_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                    const std::string& name, ConvertedWeights& weights, Report& report) {
  const NetworkModel::Settings settings = settings_of(file, group);
  const std::string reason = reason_to_skip(settings.spec.arch);
  if (!reason.empty()) {
    report.skip(name, reason);
    return;
  }
  NetworkModel model(context, settings);
  const Generator generator{.bottleneck = settings.spec.arch != "resnet18",
                            .salt = text_of(file, group, "salt")};
  model.load(weights.of(settings.spec.arch, settings.spec.dim, generator, report));
  Parameters& parameters = model.parameters();
  const auto count = static_cast<std::int64_t>(parameters.flat_elements());
  Optimizer optimizer(
      context, optimizer_params(file, group, text_of(file, group, "optimizer")),
      optimizer_groups(parameters, {.weight_decay = number_of(file, group, "weight_decay", 0),
                                    .embedding_rate = number_of(file, group, "embedding_rate", 1)}),
      count);
  StepState state{.rate = number_of(file, group, "lr", 0)};
  Comparison comparison(file);
  const std::int64_t steps = integer_of(file, group, "steps");
  std::vector<double> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::string key = fmt::format("steps.{}:{}", group.substr(1), step);
    model.set_images(generator.images(key, settings.batch, settings.height, settings.width));
    const std::vector<float> cotangent =
        generator.cotangent(key, settings.batch, settings.spec.dim);
    model.forward();
    const std::vector<double> embeddings = model.embeddings();
    double loss = 0;
    for (std::size_t i = 0; i < embeddings.size(); ++i) loss += embeddings[i] * cotangent[i];
    losses.push_back(loss);
    model.backward(cotangent);
    optimizer.step(context, &state, parameters.values().data(), parameters.gradients().data());
    if (step == 0)
      compare_state(group + "/after_1", "after 1", settings.spec.batchnorm, generator, model,
                    comparison);
  }
  comparison.compare("loss", group + "/loss", losses);
  compare_state(group + "/after_all", "after all", settings.spec.batchnorm, generator, model,
                comparison);
  finish(name, comparison.passed(), comparison.detail(), report);
}

}  // namespace rk::golden
