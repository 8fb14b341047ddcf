// Whole networks: one forward and, in the modes that train, one backward from a generated dL/dE.
// Each case runs twice: as the product does (normalisation, addition and ReLU fused or folded away)
// and with every layer a node of its own, so that the tensors in between exist and are compared.
#include "tests/golden_runner/network_cases.h"
#include "tests/golden_runner/comparison.h"
#include "tests/golden_runner/network_model.h"

#include "engine/base/error.h"

#include <optional>
#include <vector>

namespace rk::golden {
namespace {

enum class Mode { kEval, kTrain, kFrozen };

// The files' tolerances are a few times the differences between CPUs, which add in much the same
// order. A GPU adds in another: emulated with sums of random order (tests/host_gpu/rounding.h), one
// network in twenty is off by up to 1.6 times its tolerance.
constexpr double kGpuSlack = 3;

Mode parse_mode(const Hdf5Reader& file, const std::string& group) {
  const std::string text = text_of(file, group, "mode");
  if (text == "eval") return Mode::kEval;
  if (text == "train") return Mode::kTrain;
  if (text == "frozen") return Mode::kFrozen;
  fail<InputError>("{}: {} has mode {}; eval, train and frozen are known", file.name(), group,
                   text);
}

NetworkModel::Settings settings_of(const Hdf5Reader& file, const std::string& group, Mode mode) {
  NetworkModel::Settings settings;
  settings.spec.arch = text_of(file, group, "arch");
  settings.spec.dim = integer_of(file, group, "dim");
  settings.spec.pool.kind = parse_global_pool(text_of(file, group, "pool"));
  settings.spec.pool.gem.p = number_of(file, group, "gem_p", 3);
  settings.spec.pool.gem.epsilon = number_of(file, group, "gem_eps", 1e-6);
  settings.spec.batchnorm = mode == Mode::kTrain ? BatchNormMode::kBatch : BatchNormMode::kRunning;
  settings.batch = integer_of(file, group, "batch");
  settings.height = integer_of(file, group, "height");
  settings.width = integer_of(file, group, "width");
  settings.gradients = mode != Mode::kEval;
  return settings;
}

// Running statistics after a step: counted in training, otherwise neither counted nor moved by a
// bit.
void check_running(const std::string& group, Mode mode, const Generator& generator,
                   NetworkModel& model, Comparison& comparison) {
  for (const Parameters::BufferEntry& entry : model.parameters().buffers()) {
    const std::vector<double> got = model.running(entry.name);
    if (entry.counter) {
      comparison.require(got[0] == (mode == Mode::kTrain ? 1 : 0), entry.name + " is wrong");
    } else if (mode != Mode::kTrain) {
      const std::vector<float> before = generator.tensor(entry.name, {entry.elements});
      comparison.require(got == std::vector<double>(before.begin(), before.end()),
                         entry.name + " moved");
    }
  }
  if (mode == Mode::kTrain) {
    comparison.compare_table("running", group + "/running",
                             [&](const std::string& name) { return model.running(name); });
  }
}

void run(const Context& context, const Hdf5Reader& file, const std::string& group, bool fuse,
         const std::string& name, ConvertedWeights& weights, Report& report) {
  const Mode mode = parse_mode(file, group);
  NetworkModel::Settings settings = settings_of(file, group, mode);
  settings.spec.fuse = fuse;
  settings.input_gradient = mode != Mode::kEval;
  NetworkModel model(context, settings);
  const Generator generator{.bottleneck = settings.spec.arch != "resnet18",
                            .salt = text_of(file, group, "salt")};
  const std::string key = text_of(file, group, "key");
  model.load(weights.of(settings.spec.arch, settings.spec.dim, generator, report));
  model.set_images(generator.images(key, settings.batch, settings.height, settings.width));
  const std::vector<float> cotangent = generator.cotangent(key, settings.batch, settings.spec.dim);
  model.forward();
  const std::vector<double> embeddings = model.embeddings();
  double loss = 0;
  for (std::size_t i = 0; i < embeddings.size(); ++i) loss += embeddings[i] * cotangent[i];
  if (mode != Mode::kEval) model.backward(cotangent);

  Comparison comparison(file, context.on_gpu() ? kGpuSlack : 1);
  comparison.compare("features", group + "/features", model.features());
  comparison.compare("embeddings", group + "/embeddings", embeddings);
  comparison.compare("loss", group + "/loss", std::vector<double>{loss});
  // A tensor that fusion removes is checked in the unfused run.
  const auto where_it_exists = [&](const std::optional<std::vector<double>>& tensor) {
    return tensor || !fuse ? Comparison::Row{tensor.value_or(std::vector<double>{})}
                           : Comparison::Row{};
  };
  comparison.compare_table("activation", group + "/activation", [&](const std::string& tensor) {
    return where_it_exists(model.activation(tensor));
  });
  if (mode != Mode::kEval) {
    comparison.compare_table("activation_grad", group + "/activation_grad",
                             [&](const std::string& tensor) {
                               return where_it_exists(model.activation_gradient(tensor));
                             });
    comparison.compare_table("grad", group + "/grad", [&](const std::string& tensor) {
      return model.parameter_gradient(tensor);
    });
    if (settings.input_gradient) {
      comparison.compare_table("input_grad", group + "/input_grad",
                               [&](const std::string&) { return model.input_gradient(); });
    }
  }
  check_running(group, mode, generator, model, comparison);
  finish(name, comparison.passed(), comparison.detail(), report);
}

}  // namespace

void run_network_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                      const std::string& name, ConvertedWeights& weights, Report& report) {
  const std::string reason = reason_to_skip(text_of(file, group, "arch"));
  if (!reason.empty()) {
    report.skip(name, reason);
    return;
  }
  run(context, file, group, true, name, weights, report);
  run(context, file, group, false, name + " (unfused)", weights, report);
}

}  // namespace rk::golden
