#include "tests/cuda/layer_on_gpu.h"

#include "engine/device/precision.h"
#include "tests/support/program_tensors.h"
#include "tests/support/within.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

struct Computed {
  std::vector<std::vector<float>> tensors;  // NHWC, or canonical
};

// Everything that the layer computes, on the context's device.
Computed compute(const LayerCase& layer, const Context& context, Precision precision) {
  Parameters parameters;
  Program program(context, parameters,
                  {.gradients = true, .keep_all = true, .precision = precision});
  std::vector<TensorId> sources;
  for (const NodeHarness::Source& source : layer.sources) {
    const bool image = program.on_gpu() && source.shape.rank() == 4;
    sources.push_back(
        program.append(std::make_unique<SourceNode>(program.on_gpu() ? 0 : source.block), {},
                       {.name = "source",
                        .shape = source.shape,
                        .dtype = image ? image_type(precision) : DType::kFloat32}));
  }
  const TensorId output = layer.record(program, sources);
  program.set_output(output);
  program.plan();
  parameters.initialise(context, 7);
  randomise(parameters);
  parameters.upload();

  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::vector<float> values =
        layer.inputs ? layer.inputs(3)[i] : noise(layer.sources[i].shape.elements(), 30 + i);
    write(program, sources[i], program.value_of(sources[i]), values);
  }
  program.forward();
  write(program, output, program.gradient_of(output), noise(program.shape(output).elements(), 77));
  const int node = static_cast<int>(program.nodes().size()) - 1;
  program.backward(node);
  program.complete_gradients(node, node + 1);
  parameters.download();
  parameters.download_gradients();

  Computed out;
  out.tensors.push_back(read(program, output, program.value_of(output)));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!layer.sources[i].wants_gradient) continue;
    out.tensors.push_back(read(program, sources[i], program.gradient_of(sources[i])));
  }
  for (std::size_t id = 0; id < parameters.entries().size(); ++id) {
    out.tensors.emplace_back(static_cast<std::size_t>(parameters.entries()[id].elements()));
    parameters.get(parameters.gradients(), static_cast<ParameterId>(id), out.tensors.back().data());
  }
  const auto statistics = parameters.statistics();
  out.tensors.emplace_back(statistics.begin(), statistics.end());
  return out;
}

void compare(const LayerCase& layer, const Computed& got, const Computed& expected) {
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (std::size_t t = 0; t < expected.tensors.size(); ++t) {
    ASSERT_EQ(got.tensors[t].size(), expected.tensors[t].size());
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < expected.tensors[t].size(); ++i) {
      const auto value = static_cast<double>(expected.tensors[t][i]);
      const double off = std::abs(static_cast<double>(got.tensors[t][i]) - value);
      largest = std::max(largest, std::abs(value));
      if (off > worst || std::isnan(off)) worst = off;  // NaN stays
    }
    // Sums of up to a thousand float32 products in another order; where the true value is 0 (batch
    // norm over one pixel), their rounding alone.
    expect_within(layer.name, worst, 2e-5 * largest + 3e-6, fmt::format("tensor {}", t));
  }
}

}  // namespace

void compare_with_cpu(const LayerCase& layer, const Context& gpu) {
  const Computed expected = compute(layer, Context(2), Precision::kFp32);
  compare(layer, compute(layer, gpu, Precision::kFp32), expected);
  // A layer without a matrix product computes in float32 under tf32 too, but by graphs.
  if (layer.name.starts_with("batchnorm_batch")) {
    compare(layer, compute(layer, gpu, Precision::kTf32), expected);
  }
}

void compare_half_with_cpu(const LayerCase& layer, const Context& gpu, Precision precision) {
  LayerCase given = layer;
  given.inputs = [&](std::uint64_t seed) {
    std::vector<std::vector<float>> values;
    if (layer.inputs) values = layer.inputs(seed);
    for (std::size_t i = values.size(); i < layer.sources.size(); ++i) {
      values.push_back(noise(layer.sources[i].shape.elements(), seed + i));
    }
    for (std::vector<float>& each : values) each = rounded_to(image_type(precision), each);
    return values;
  };
  const Computed expected = compute(given, Context(2), Precision::kFp32);
  const Computed got = compute(given, gpu, precision);
  const double rounding = precision == Precision::kBf16 ? 0x1p-8 : 0x1p-11;
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (std::size_t t = 0; t < expected.tensors.size(); ++t) {
    ASSERT_EQ(got.tensors[t].size(), expected.tensors[t].size());
    double squares = 0, size = 0;
    for (std::size_t i = 0; i < expected.tensors[t].size(); ++i) {
      const auto value = static_cast<double>(expected.tensors[t][i]);
      squares += std::pow(static_cast<double>(got.tensors[t][i]) - value, 2);
      size += value * value;
    }
    // Weights, outputs and gradients are rounded; the emulated GPU is off by up to 1.2 roundings. A
    // contribution that is missing or counts twice is off by a tenth and more.
    expect_within(layer.name, std::sqrt(squares), 6 * rounding * std::sqrt(size),
                  fmt::format("{}, tensor {}", name_of(precision), t));
  }
}

void compare_nan_with_cpu(const LayerCase& layer, const Context& gpu) {
  LayerCase spoilt = layer;
  spoilt.inputs = [&](std::uint64_t seed) {
    std::vector<std::vector<float>> values;
    for (const NodeHarness::Source& source : layer.sources) {
      values.push_back(noise(source.shape.elements(), seed + values.size()));
    }
    values[0][values[0].size() / 2] = std::nanf("");
    return values;
  };
  const auto are_nan = [](const std::vector<float>& values) {
    std::vector<bool> out;
    for (const float value : values) out.push_back(std::isnan(value));
    return out;
  };
  const Computed expected = compute(spoilt, Context(2), Precision::kFp32);
  EXPECT_NE(std::ranges::count(are_nan(expected.tensors[0]), true), 0);
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    const Computed got = compute(spoilt, gpu, precision);
    // A ReLU in a graph of cuDNN may make 0 of NaN; then the statistics tell (training/trainer.h).
    const bool may_be_lost = precision == Precision::kTf32 &&
                             layer.name.starts_with("batchnorm_batch") &&
                             layer.name.find("relu") != std::string::npos;
    if (!may_be_lost) {
      EXPECT_EQ(are_nan(got.tensors[0]), are_nan(expected.tensors[0])) << name_of(precision);
    }
    EXPECT_EQ(are_nan(got.tensors.back()), are_nan(expected.tensors.back()))
        << name_of(precision) << ", statistics";
  }
}

}  // namespace rk
