// The list of layers that the conformance tests run through: one entry per layer and variant, at
// shapes that are odd, blocked or tiny.
#pragma once

#include "tests/support/node_harness.h"

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace rk {

struct LayerCase {
  std::string name;
  std::vector<NodeHarness::Source> sources = {};
  NodeHarness::Record record = {};
  // Step of the central differences: wide where the layer is linear (then only rounding is left),
  // narrow where it is curved.
  double step = 0.01;
  // Returns the inputs' values for a seed; empty: noise.
  std::function<std::vector<std::vector<float>>(std::uint64_t seed)> inputs = {};
  // The same layer without its kink (ReLU): where its outputs are near 0, the inputs are near the
  // kink.
  NodeHarness::Record smooth = {};
};

inline void PrintTo(const LayerCase& c, std::ostream* out) { *out << c.name; }

const std::vector<LayerCase>& layer_cases();

// Fills parameters and running statistics with noise; gamma and the variance stay well above 0.
void randomise(Parameters& parameters);

}  // namespace rk
