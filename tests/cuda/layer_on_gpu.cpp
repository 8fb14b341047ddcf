#include "tests/cuda/layer_on_gpu.h"

#include "engine/device/precision.h"
#include "tests/cuda/program_floats.h"
#include "tests/support/stored_images.h"
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
    const std::int64_t block = program.on_gpu() ? 0 : source.block;
    sources.push_back(program.append(std::make_unique<SourceNode>(block), {},
                                     {.name = "source", .shape = source.shape}));
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
    write(program, program.value(sources[i]), as_stored(program, sources[i], values));
  }
  program.forward();
  write(program, program.gradient(output),
        as_stored(program, output, noise(program.shape(output).elements(), 77)));
  const int node = static_cast<int>(program.nodes().size()) - 1;
  program.backward(node);
  program.complete_gradients(node, node + 1);
  parameters.download();
  parameters.download_gradients();

  Computed out;
  const auto keep = [&](TensorId id, const float* place) {
    const std::vector<float> values = read(program, place, program.shape(id).elements());
    out.tensors.push_back(from_stored(program, id, values.data()));
  };
  keep(output, program.value(output));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (layer.sources[i].wants_gradient) keep(sources[i], program.gradient(sources[i]));
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
  const auto is_nan = [&](const Context& context, Precision precision) {
    const Computed computed = compute(spoilt, context, precision);
    std::vector<bool> out;
    for (const float y : computed.tensors[0]) out.push_back(std::isnan(y));
    return out;
  };
  const std::vector<bool> expected = is_nan(Context(2), Precision::kFp32);
  EXPECT_NE(std::ranges::count(expected, true), 0);
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    EXPECT_EQ(is_nan(gpu, precision), expected) << name_of(precision);
  }
}

}  // namespace rk
