// The list of layers that the conformance tests run through: one entry a layer and variant, at
// shapes that are odd, blocked or tiny.
#pragma once

#include "tests/support/node_harness.h"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace rk::testing {

struct LayerCase {
  std::string name;
  std::vector<NodeHarness::Source> sources = {};
  NodeHarness::Record record = {};
  // Step of the central differences: wide where the layer is linear (then differences are exact and
  // rounding is all there is), narrow where it is curved.
  double step = 0.01;
  // Values of the inputs for a seed; empty: noise.
  std::function<std::vector<std::vector<float>>(std::uint64_t seed)> inputs = {};
  // The same layer without its kink (ReLU): outputs near 0 there are inputs near the kink.
  NodeHarness::Record smooth = {};
};

inline void PrintTo(const LayerCase& c, std::ostream* out) { *out << c.name; }

const std::vector<LayerCase>& layer_cases();

// Parameters and running statistics of no special kind: gamma and the variance well above 0.
void randomise(Parameters& parameters);

}  // namespace rk::testing
