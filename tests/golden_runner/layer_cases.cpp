// Cases of layers.h5: single layers and optimizers, comparing every tensor in full. The file holds
// NCHW and OIHW.
#include "tests/golden_runner/comparison.h"
#include "tests/golden_runner/network_cases.h"
#include "tests/support/nchw.h"
#include "tests/support/stored_images.h"

#include "engine/tape/program.h"
#include "layers/batchnorm.h"
#include "layers/conv2d.h"
#include "layers/elementwise.h"
#include "layers/l2norm.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "tests/support/parameter_id.h"

#include <algorithm>
#include <array>
#include <functional>

namespace rk::golden {
namespace {

// A program of one layer on the tensors of a case.
class LayerModel {
 public:
  LayerModel(const Context& context, const Hdf5Reader& file, const std::string& group)
      : file_(file),
        group_(group),
        program_(context, parameters_,
                 {.gradients = true, .input_gradient = true, .keep_all = true}) {}

  Program& program() { return program_; }
  Parameters& parameters() { return parameters_; }

  TensorId input(const std::string& dataset) {
    const std::vector<std::int64_t> dims = file_.info(group_ + "/" + dataset).dims;
    Shape shape;
    if (dims.size() == 4) {
      shape = Shape{dims[0], dims[2], dims[3], dims[1]};
    } else {
      for (std::int64_t d : dims) shape.append(d);
    }
    inputs_.push_back({dataset, program_.input(dataset, shape)});
    return inputs_.back().id;
  }

  // Parameter `name` of the layer is data set `dataset` of the case.
  void bind(const std::string& name, const std::string& dataset) {
    bound_.push_back({name, dataset});
  }

  void run(TensorId output) {
    output_ = output;
    program_.set_output(output);
    program_.plan();
    for (const Bound& b : bound_) {
      parameters_.set(parameters_.values(), parameter(b.name), read(b.dataset).data());
    }
    for (const Input& i : inputs_) {
      const std::vector<float> values = to_product(i.id, read(i.dataset));
      std::ranges::copy(values, program_.value(i.id));
    }
    program_.forward();
    // A plain copy is enough: the cases' numbers of channels are odd, so no layout has blocks.
    const std::vector<float> dy = to_product(output, read("dy"));
    std::ranges::copy(dy, program_.gradient(output));
    output_value_ = from_product(output, program_.value(output));
    program_.backward();
  }

  void compare(Comparison& comparison) {
    comparison.compare("y", group_ + "/y", output_value_);
    for (const Input& i : inputs_) {
      const std::string gradient = "d" + i.dataset;
      comparison.compare(gradient, group_ + "/" + gradient,
                         from_product(i.id, program_.gradient(i.id)));
    }
    for (const Bound& b : bound_) {
      const ParameterId id = parameter(b.name);
      std::vector<float> values(static_cast<std::size_t>(parameters_.entry(id).elements()));
      parameters_.get(parameters_.gradients(), id, values.data());
      const std::string gradient = "d" + b.dataset;
      comparison.compare(gradient, group_ + "/" + gradient,
                         std::vector<double>(values.begin(), values.end()));
    }
  }

  std::vector<float> read(const std::string& dataset) const {
    return file_.read<float>(group_ + "/" + dataset);
  }

 private:
  struct Input {
    std::string dataset;
    TensorId id;
  };
  struct Bound {
    std::string name, dataset;
  };

  ParameterId parameter(const std::string& name) const { return id_of(parameters_, name); }
  std::vector<float> to_product(TensorId id, const std::vector<float>& values) const {
    const Shape& shape = program_.shape(id);
    if (shape.rank() != 4) return values;
    return as_stored(program_, id, nchw_to_nhwc(values, shape[3], shape[1] * shape[2]));
  }
  std::vector<double> from_product(TensorId id, const float* stored) const {
    const Shape& shape = program_.shape(id);
    std::vector<float> values = from_stored(program_, id, stored);
    if (shape.rank() == 4) values = nhwc_to_nchw(values, shape[3], shape[1] * shape[2]);
    return {values.begin(), values.end()};
  }

  const Hdf5Reader& file_;
  std::string group_;
  Parameters parameters_;
  Program program_;
  std::vector<Input> inputs_;
  std::vector<Bound> bound_;
  TensorId output_ = -1;
  std::vector<double> output_value_;
};

struct Case {
  const Context& context;
  const Hdf5Reader& file;
  const std::string& group;

  std::array<std::int64_t, 2> pair(const std::string& name,
                                   std::array<std::int64_t, 2> fallback) const {
    const auto at = [&](std::size_t i) {
      return static_cast<std::int64_t>(
          number_of(file, group, name, static_cast<double>(fallback[i]), i));
    };
    return {at(0), at(1)};
  }
};

using Layer = std::function<TensorId(LayerModel&)>;

void run_layer(const Case& c, const std::string& name, const Layer& layer, Report& report,
               const std::string& remark = "") {
  LayerModel model(c.context, c.file, c.group);
  model.run(layer(model));
  Comparison comparison(c.file);
  model.compare(comparison);
  finish(name, comparison.passed(), comparison.detail() + remark, report);
}

void run_convolution(const Case& c, const std::string& name, Report& report) {
  if (c.file.has(c.group + "/b")) {
    report.skip(name, "convolutions have no bias here: a batch normalisation follows each");
    return;
  }
  const std::vector<std::int64_t> w = c.file.info(c.group + "/w").dims;
  run_layer(
      c, name,
      [&](LayerModel& model) {
        const TensorId x = model.input("x");
        model.bind("conv.weight", "w");
        return conv2d(model.program(), x, "conv",
                      {w[0], {w[2], w[3]}, c.pair("stride", {1, 1}), c.pair("padding", {0, 0})});
      },
      report);
}

void run_batchnorm(const Case& c, const std::string& name, Report& report) {
  const bool train = number_of(c.file, c.group, "train", 1) != 0;
  LayerModel model(c.context, c.file, c.group);
  const TensorId x = model.input("x");
  model.bind("bn.weight", "w");
  model.bind("bn.bias", "b");
  const BatchNormOptions options{.mode = train ? BatchNormMode::kBatch : BatchNormMode::kRunning,
                                 .epsilon = number_of(c.file, c.group, "eps", 1e-5),
                                 .momentum = number_of(c.file, c.group, "momentum", 0.1)};
  const TensorId y = batchnorm(model.program(), x, "bn", options);
  const std::int64_t channels = model.program().shape(x)[3];
  model.parameters().allocate(Context(1));
  const auto running = [&](const std::string& which) {
    return model.parameters().buffer(
        model.parameters().declare_buffer("bn." + which, channels, 0.0F));
  };
  for (const std::string which : {"running_mean", "running_var"}) {
    std::ranges::copy(model.read(which), running(which));
  }
  model.run(y);
  Comparison comparison(c.file);
  model.compare(comparison);
  for (const std::string which : {"running_mean", "running_var"}) {
    const float* after = running(which);
    if (train) {
      comparison.compare(which, c.group + "/new_" + which,
                         std::vector<double>(after, after + channels));
    } else {
      comparison.require(
          std::ranges::equal(model.read(which), std::vector<float>(after, after + channels)),
          which + " moved");
    }
  }
  finish(name, comparison.passed(), comparison.detail(), report);
}

void run_pool(const Case& c, const std::string& name, bool average, Report& report) {
  run_layer(
      c, name,
      [&](LayerModel& model) {
        PoolOptions options;
        options.kernel = c.pair("kernel", {1, 1});
        options.stride = c.pair("stride", {1, 1});
        options.padding = c.pair("padding", {0, 0});
        options.ceil_mode = number_of(c.file, c.group, "ceil_mode", 0) != 0;
        const TensorId x = model.input("x");
        return average ? average_pool(model.program(), x, "pool", options)
                       : max_pool(model.program(), x, "pool", options);
      },
      report);
}

void run_global_pool(const Case& c, const std::string& name, PoolKind kind, Report& report) {
  const bool gem = kind == PoolKind::kGem;
  GlobalPoolOptions options{.kind = kind, .gem = {}};
  if (gem) {
    options.gem.p = c.file.read<double>(c.group + "/p").at(0);
    options.gem.epsilon = number_of(c.file, c.group, "eps", 1e-6);
  }
  run_layer(
      c, name,
      [&](LayerModel& model) {
        return global_pool(model.program(), model.input("x"), "pool", options);
      },
      report, gem ? " (dp not compared: p is not learned)" : "");
}

void run_optimizer(const Case& c, const std::string& name, const std::string& op, Report& report) {
  std::vector<float> parameters = c.file.read<float>(c.group + "/param");
  const std::vector<float> gradients = c.file.read<float>(c.group + "/grad");
  const auto count = static_cast<std::int64_t>(parameters.size());
  const Context cpu(c.context.threads());
  Optimizer optimizer(cpu, optimizer_params(c.file, c.group, op),
                      {{0, count, 1.0, number_of(c.file, c.group, "weight_decay", 0)}}, count);
  StepState state{.rate = number_of(c.file, c.group, "lr", 0)};
  std::vector<double> after;
  for (std::size_t at = 0; at < gradients.size(); at += parameters.size()) {
    optimizer.step(cpu, &state, parameters.data(), gradients.data() + at);
    after.insert(after.end(), parameters.begin(), parameters.end());
  }
  Comparison comparison(c.file);
  comparison.compare("param_after", c.group + "/param_after", after);
  finish(name, comparison.passed(), comparison.detail(), report);
}

}  // namespace

void run_layer_case(const Context& context, const Hdf5Reader& file, const std::string& group,
                    const std::string& name, Report& report) {
  const Case c{context, file, group};
  const std::string op = text_of(file, group, "op");
  if (op == "conv2d") return run_convolution(c, name, report);
  if (op == "batchnorm") return run_batchnorm(c, name, report);
  if (op == "max_pool" || op == "avg_pool") return run_pool(c, name, op == "avg_pool", report);
  if (op == "global_avg_pool") return run_global_pool(c, name, PoolKind::kAverage, report);
  if (op == "global_max_pool") return run_global_pool(c, name, PoolKind::kMax, report);
  if (op == "gem_pool") return run_global_pool(c, name, PoolKind::kGem, report);
  if (op == "adam" || op == "adamw" || op == "sgd") return run_optimizer(c, name, op, report);
  if (op == "relu") {
    return run_layer(
        c, name, [](LayerModel& model) { return relu(model.program(), model.input("x"), "relu"); },
        report);
  }
  if (op == "add_relu") {
    return run_layer(
        c, name,
        [](LayerModel& model) {
          const TensorId a = model.input("a"), b = model.input("b");
          return relu(model.program(), add(model.program(), a, b, "add"), "relu");
        },
        report);
  }
  if (op == "linear") {
    const std::vector<std::int64_t> w = file.info(group + "/w").dims;
    return run_layer(
        c, name,
        [&](LayerModel& model) {
          const TensorId x = model.input("x");
          model.bind("fc.weight", "w");
          model.bind("fc.bias", "b");
          return linear(model.program(), x, "fc", {.out_features = w[0]});
        },
        report);
  }
  if (op == "l2norm") {
    return run_layer(
        c, name,
        [&](LayerModel& model) {
          return l2norm(model.program(), model.input("x"), "l2norm",
                        number_of(file, group, "eps", 1e-12));
        },
        report);
  }
  report.skip(name, op + ": no such layer in the product");
}

}  // namespace rk::golden
