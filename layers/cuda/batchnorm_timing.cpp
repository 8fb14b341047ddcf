#include "layers/cuda/batchnorm_timing.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "layers/conv_bn.h"
#include "layers/graphs/graph_run.h"
#include "layers/graphs/trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

namespace rk::gpu {
namespace {

// What two ways may differ by in the gradients: a wrong mask or sum is off by its whole size,
// rounding to 16 bits and what follows from it on ReLU's other side by some hundredths.
constexpr double kGradientAgreement = 0.1;

// One convolution with its normalisation, as a network would have it.
class UnitProgram {
 public:
  UnitProgram(const Context& context, const BatchNormUnit& unit, Precision precision)
      : context_(context),
        program_(
            context, parameters_,
            {.gradients = true, .input_gradient = unit.input_gradient, .precision = precision}) {
    const ConvolutionGeometry& g = unit.convolution;
    const DType type = image_type(precision);
    Shape x = g.x;
    Conv2dOptions convolution = g.options;
    if (!unit.input_gradient) {
      convolution.in_channels = x[3];
      x = {x[0], x[1], x[2], unit.sums.c};
    }
    BatchNormOptions batchnorm{.mode = BatchNormMode::kBatch, .relu = unit.relu};
    inputs_.push_back(program_.input("x", x, 0, type));
    if (unit.residual) {
      batchnorm.residual = program_.input("residual", g.y, 0, type);
      inputs_.push_back(batchnorm.residual);
    }
    output_ = conv_bn(program_, inputs_[0], {"conv", "bn", "y"}, convolution, batchnorm);
    program_.set_output(output_);
    program_.plan();
    parameters_.initialise(context, 1);
    parameters_.upload();
    for (const TensorId input : inputs_) values_.push_back(noise(program_.shape(input), type));
    dy_ = noise(g.y, type);
  }

  // A pass forward and back, or only what puts its tensors in place.
  std::unique_ptr<CudaGraph> captured(bool passes) {
    return std::make_unique<CudaGraph>(context_.cuda(), [&] {
      for (std::size_t i = 0; i < kTrialLaunches; ++i) {
        put_inputs();
        if (passes) program_.forward();
        put_gradient();
        if (passes) program_.backward();
      }
    });
  }
  struct Result {
    Memory output;  // a copy: its place is used for something else in backward
    std::vector<float> parameter_gradients;
  };
  Result compute() {
    put_inputs();
    program_.forward();
    Result result{.output = context_.allocate(dy_.bytes()), .parameter_gradients = {}};
    context_.cuda().copy(result.output.data(), program_.value_of(output_).data, dy_.bytes());
    put_gradient();
    program_.backward();
    parameters_.download();
    result.parameter_gradients.assign(parameters_.gradients().begin(),
                                      parameters_.gradients().end());
    return result;
  }

 private:
  Memory noise(const Shape& shape, DType type) {
    Memory memory = context_.allocate(static_cast<std::size_t>(shape.elements()) * size_of(type));
    fill_with_noise(context_, memory.data(), shape.elements(), type, streams_++);
    return memory;
  }
  // A pass may use their places for something else when they have been read.
  void put_inputs() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      context_.cuda().copy(program_.value_of(inputs_[i]).data, values_[i].data(),
                           values_[i].bytes());
    }
  }
  // There is a place for it only from the end of forward on.
  void put_gradient() {
    context_.cuda().copy(program_.gradient_of(output_).data, dy_.data(), dy_.bytes());
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

GpuPlans plans_for(BatchNormWay way, const BatchNormUnit& unit, const std::string& sums_engine,
                   GpuPlans plans) {
  if (way != BatchNormWay::kGraphs) {
    plans.add(unit.graphs.forward.text(), std::string(GpuPlans::kOwnKernels), "");
  }
  if (way == BatchNormWay::kSums) plans.add(unit.sums.text(), sums_engine, "");
  return plans;
}

WayTimings time_ways(const Context& context, const BatchNormUnit& unit, const GpuPlans& plans,
                     const std::string& sums_engine, int repeats) {
  const Precision precision = unit.sums.precision;
  std::array<std::unique_ptr<UnitProgram>, kBatchNormWays.size()> programs;
  const auto for_each = [&](auto&& f) {
    for (std::size_t w = 0; w < programs.size(); ++w) {
      if (kBatchNormWays[w] != BatchNormWay::kSums || !sums_engine.empty()) f(w);
    }
  };
  for_each([&](std::size_t w) {
    set_plans(context, plans_for(kBatchNormWays[w], unit, sums_engine, plans));
    programs[w] = std::make_unique<UnitProgram>(context, unit, precision);
  });
  set_plans(context, plans);
  const UnitProgram::Result own = programs[static_cast<std::size_t>(BatchNormWay::kOwn)]->compute();
  WayTimings timings;
  for_each([&](std::size_t w) {
    const UnitProgram::Result result = programs[w]->compute();
    WayTiming& timing = timings[w];
    timing.error = largest_error(context, result.output.data(), own.output.data(),
                                 unit.convolution.y.elements(), image_type(precision));
    timing.gradient_error = relative_error(result.parameter_gradients, own.parameter_gradients);
    timing.agrees =
        timing.error <= 2 * agreement(precision) && timing.gradient_error <= kGradientAgreement;
  });
  std::vector<std::unique_ptr<CudaGraph>> passes, copies;
  for_each([&](std::size_t w) { passes.push_back(programs[w]->captured(true)); });
  // The same for all ways.
  copies.push_back(programs[static_cast<std::size_t>(BatchNormWay::kOwn)]->captured(false));
  const std::vector<double> times = time_replays(context, passes, repeats);
  const double copying = time_replays(context, copies, repeats)[0];
  std::size_t next = 0;
  for_each([&](std::size_t w) {
    timings[w].ms = (times[next++] - copying) / static_cast<double>(kTrialLaunches);
  });
  return timings;
}

}  // namespace rk::gpu
