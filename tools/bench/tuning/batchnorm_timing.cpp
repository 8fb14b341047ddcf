#include "tools/bench/tuning/batchnorm_timing.h"

#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "layers/conv_bn.h"
#include "layers/gpu/convolution.h"
#include "layers/graphs/graph_runner.h"
#include "layers/graphs/trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

namespace rk {
namespace {

// Tolerance for the difference between two algorithms' gradients: a wrong mask or sum is off by its
// whole size; rounding to 16 bits, and the signs that it flips at ReLU, by some hundredths.
constexpr double kGradientAgreement = 0.1;

// One convolution with its normalisation, as in a network.
class UnitProgram {
 public:
  UnitProgram(const Context& context, const BatchNormUnit& unit)
      : context_(context),
        program_(context, parameters_,
                 {.gradients = true,
                  .input_gradient = unit.input_gradient,
                  .precision = unit.sums.precision()}) {
    const ConvolutionGeometry& g = unit.convolution;
    const DType type = image_type(unit.sums.precision());
    BatchNormOptions batchnorm = unit.batchnorm;
    inputs_.push_back(program_.input("x", g.x, 0, type));
    if (batchnorm.residual >= 0) {
      batchnorm.residual = program_.input("residual", g.y, 0, type);
      inputs_.push_back(batchnorm.residual);
    }
    output_ = conv_bn(program_, inputs_[0], {"conv", "bn", "y"}, g.options, batchnorm);
    program_.set_output(output_);
    program_.plan();
    parameters_.initialise(context, 1);
    parameters_.upload();
    for (const TensorId input : inputs_) values_.push_back(noise(program_.shape(input), type));
    dy_ = noise(g.y, type);
  }

  std::size_t bytes() const {
    std::size_t all = program_.footprint().arena_bytes + dy_.bytes();
    for (const Memory& values : values_) all += values.bytes();
    return all;
  }
  // Starts forward and backward passes, or only the copies that put their tensors in place.
  void start(bool passes) {
    put_inputs();
    if (passes) program_.forward();
    put_gradient();
    if (passes) program_.backward();
  }
  struct Result {
    Memory output;  // a copy: backward reuses the original's memory
    std::vector<float> parameter_gradients;
  };
  Result compute() {
    put_inputs();
    program_.forward();
    Result result{.output = context_.allocate(dy_.bytes()), .parameter_gradients = {}};
    context_.copy(result.output.data(), program_.value_of(output_).data, dy_.bytes());
    put_gradient();
    program_.backward();
    parameters_.download_gradients();
    result.parameter_gradients.assign(parameters_.gradients().begin(),
                                      parameters_.gradients().end());
    return result;
  }

 private:
  Memory noise(const Shape& shape, DType type) {
    Memory memory = context_.allocate(static_cast<std::size_t>(shape.elements()) * size_of(type));
    gpu::fill_with_noise(context_, memory.data(), shape.elements(), type, streams_++);
    return memory;
  }
  // Repeated before every pass, because a pass may reuse the inputs' memory once they have been
  // read.
  void put_inputs() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      context_.copy(program_.value_of(inputs_[i]).data, values_[i].data(), values_[i].bytes());
    }
  }
  // The output's gradient has memory only from the end of forward on.
  void put_gradient() {
    context_.copy(program_.gradient_of(output_).data, dy_.data(), dy_.bytes());
  }

  const Context& context_;
  Parameters parameters_;
  Program program_;
  std::vector<TensorId> inputs_;
  TensorId output_ = -1;
  std::vector<Memory> values_;  // of the inputs
  Memory dy_;
  std::uint32_t streams_ = 0;
};

// One algorithm on several sets of tensors, of which a launch takes the next: together they are
// larger than the caches, as between two steps of a network.
class UnitPrograms {
 public:
  UnitPrograms(const Context& context, const BatchNormUnit& unit) : context_(context) {
    do {
      sets_.push_back(std::make_unique<UnitProgram>(context, unit));
    } while (sets_.size() < gpu::kTrialLaunches &&
             sets_.size() * sets_[0]->bytes() < gpu::kBeyondCaches);
  }

  UnitProgram::Result compute() { return sets_[0]->compute(); }
  std::unique_ptr<CudaGraph> captured(bool passes) {
    return std::make_unique<CudaGraph>(context_.cuda(), [&] {
      for (std::size_t i = 0; i < gpu::kTrialLaunches; ++i) sets_[i % sets_.size()]->start(passes);
    });
  }

 private:
  const Context& context_;
  std::vector<std::unique_ptr<UnitProgram>> sets_;
};

double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double squares = 0, scale = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<double>(expected[i]);
    const double off = static_cast<double>(got[i]) - value;
    squares += off * off;
    scale += value * value;
  }
  return std::sqrt(squares / scale);
}

}  // namespace

std::vector<BatchNormUnit> batchnorm_units(const Program& program) {
  const auto& nodes = program.nodes();
  const auto input = [&](std::size_t node) { return program.tape().links[node].inputs[0].tensor; };
  std::vector<BatchNormUnit> units;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto* normalisation = dynamic_cast<const gpu::BatchNormNode*>(nodes[n].get());
    if (normalisation == nullptr || normalisation->options().mode != BatchNormMode::kBatch)
      continue;
    const auto before =
        std::ranges::find(nodes, program.producer(input(n)),
                          [](const auto& node) -> const Node* { return node.get(); });
    if (before == nodes.end()) continue;
    const auto* convolution = dynamic_cast<const ConvolutionNode*>(before->get());
    if (convolution == nullptr) continue;
    const ConvolutionGeometry& g = convolution->geometry();
    const Precision precision = program.options().precision;
    BatchNormUnit next{.convolution = g,
                       .batchnorm = normalisation->options(),
                       .input_gradient = program.wants_gradient(
                           input(static_cast<std::size_t>(before - nodes.begin()))),
                       .count = 1,
                       .sums = gpu::forward_graph(g, precision, {.sums = true}),
                       .graphs = gpu::batchnorm_graphs(normalisation->shape(), precision,
                                                       normalisation->options())};
    const auto same = std::ranges::find_if(units, [&](const BatchNormUnit& other) {
      return other.sums == next.sums && other.graphs.forward == next.graphs.forward &&
             other.input_gradient == next.input_gradient;
    });
    if (same == units.end()) {
      units.push_back(std::move(next));
    } else {
      ++same->count;
    }
  }
  return units;
}

GpuPlans plans_for(BatchNormAlgorithm algorithm, const BatchNormUnit& unit,
                   const std::string& sums_engine, GpuPlans plans) {
  if (algorithm != BatchNormAlgorithm::kGraphs) {
    plans.add(unit.graphs.forward.text(), std::string(GpuPlans::kOwnKernels), "");
  }
  // Overrides the entry that another normalisation after the same convolution may have left.
  const bool sums = algorithm == BatchNormAlgorithm::kSums;
  plans.add(unit.sums.text(), sums ? sums_engine : std::string(GpuPlans::kOwnKernels), "");
  return plans;
}

AlgorithmTimings time_algorithms(const Context& context, const BatchNormUnit& unit,
                                 const GpuPlans& plans, const std::string& sums_engine,
                                 int repeats) {
  const Precision precision = unit.sums.precision();
  constexpr auto kOwn = static_cast<std::size_t>(BatchNormAlgorithm::kOwn);
  std::array<std::unique_ptr<UnitPrograms>, kBatchNormAlgorithms.size()> programs;
  const auto for_each = [&](auto&& f) {
    for (std::size_t a = 0; a < programs.size(); ++a) {
      if (kBatchNormAlgorithms[a] != BatchNormAlgorithm::kSums || !sums_engine.empty()) f(a);
    }
  };
  for_each([&](std::size_t a) {
    set_plans(context, plans_for(kBatchNormAlgorithms[a], unit, sums_engine, plans));
    programs[a] = std::make_unique<UnitPrograms>(context, unit);
  });
  set_plans(context, plans);
  const UnitProgram::Result own = programs[kOwn]->compute();
  AlgorithmTimings timings;
  for_each([&](std::size_t a) {
    const UnitProgram::Result result = programs[a]->compute(), again = programs[a]->compute();
    AlgorithmTiming& timing = timings[a];
    timing.error = gpu::relative_error(context, result.output.data(), own.output.data(),
                                       unit.convolution.y.elements(), image_type(precision));
    timing.gradient_error = relative_error(result.parameter_gradients, own.parameter_gradients);
    // cuDNN may compile kernels that sum atomically, in another order every time, without calling
    // them nondeterministic.
    const bool same_bits =
        result.parameter_gradients == again.parameter_gradients &&
        gpu::relative_error(context, again.output.data(), result.output.data(),
                            unit.convolution.y.elements(), image_type(precision)) == 0;
    timing.agrees = same_bits && timing.error <= 2 * agreement(precision) &&
                    timing.gradient_error <= kGradientAgreement;
  });
  std::vector<std::unique_ptr<CudaGraph>> passes, copies;
  for_each([&](std::size_t a) { passes.push_back(programs[a]->captured(true)); });
  // The copies are the same for all algorithms.
  copies.push_back(programs[kOwn]->captured(false));
  const std::vector<double> times = gpu::time_replays(context, passes, repeats);
  const double copying = gpu::time_replays(context, copies, repeats)[0];
  std::size_t next = 0;
  for_each([&](std::size_t a) {
    timings[a].ms = (times[next++] - copying) / static_cast<double>(gpu::kTrialLaunches);
  });
  return timings;
}

}  // namespace rk
