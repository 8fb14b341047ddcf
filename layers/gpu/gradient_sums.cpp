#include "layers/gpu/gradient_sums.h"

#include <algorithm>
#include <vector>

namespace rk::gpu {

using enum GraphRole;

bool is_masked_gradient(const Graph& graph) {
  return graph.has(Graph::Op::kDgrad) && graph.has(Graph::Op::kReluGradient);
}

Graph graph_with_sums(const Graph& gradient, bool residual) {
  Graph g(gradient.precision());
  const Graph::Operation& dgrad = gradient.operations()[0];
  const Shape& image = gradient.tensor(dgrad.outputs[0]).shape;
  const auto dy = g.read(kDy, gradient), w = g.read(kW, gradient);
  auto dx = g.dgrad(dy, w, dgrad.window, image);
  if (gradient.has(Graph::Op::kAdd)) dx = g.add(dx, g.read(kAddend, gradient));
  const Shape channels = {image[3]};
  const auto x = g.read(kX, image), gamma = g.read(kGamma, channels),
             beta = g.read(kBeta, channels);
  const auto mean = g.read(kMean, channels), inv_std = g.read(kInvStd, channels);
  const auto sums = g.masked_sums(dx, x, gamma, beta, mean, inv_std,
                                  residual ? g.read(kResidual, image) : Graph::kNoValue);
  g.write(sums.dy, kDx);
  g.write(sums.dgamma, kDGamma);
  g.write(sums.dbeta, kDBeta);
  g.write(sums.scale_dy, kScaleDy);
  g.write(sums.scale_x, kScaleX);
  g.write(sums.shift, kShift);
  return g;
}

UnitNormalisation::UnitNormalisation(const Context& context, std::int64_t channels)
    : channels_(channels) {
  const auto each = static_cast<std::size_t>(channels);
  std::vector<float> values(6 * each);
  std::fill_n(values.begin() + channels, channels, 1.0F);
  vectors_ = context.copy_of(values);
}

std::vector<GraphRunner::Place> UnitNormalisation::places(float* sums) const {
  const auto vector = [&](int i) { return vectors_.as<float>() + i * channels_; };
  const float *zeros = vector(0), *ones = vector(1);
  return {{kGamma, ones},        {kBeta, zeros},       {kMean, zeros},
          {kInvStd, ones},       {kDGamma, vector(2)}, {kDBeta, sums},
          {kScaleDy, vector(3)}, {kScaleX, vector(4)}, {kShift, vector(5)}};
}

}  // namespace rk::gpu
