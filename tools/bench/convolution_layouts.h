// Which memory layout serves a network's convolutions best: oneDNN's direct primitives (forward,
// gradient of the input, gradient of the weight) timed by themselves in every layout the library
// offers, beside the layout that the layers chose, in one run.
#pragma once

#include "engine/device/context.h"
#include "engine/tape/program.h"

#include <string>
#include <vector>

namespace rk {

struct LayoutTime {
  std::string layout;  // "chosen", "nhwc", "blocks of 16", ...
  // ms of all convolutions of a step, each as often as the network has it: the sum of the medians
  // of their passes.
  double total = 0;
  bool complete = true;  // false: some convolution has no fast primitive in this layout
};

// One shape of convolution: medians of its passes together, by layout; infinite where the library
// only has reference code.
struct ConvolutionTimes {
  std::string shape;
  int count = 0;  // how often the network has it
  std::vector<double> ms;
};

struct LayoutComparison {
  std::vector<LayoutTime> layouts;
  std::vector<ConvolutionTimes> convolutions;
  // The sum if every convolution were run in the layout that is fastest for it and changing
  // between layouts were free: no choice can be faster.
  double least = 0;
};

// program: planned, with its convolutions' shapes. Every primitive runs `repeats` times, the
// layouts in turn.
LayoutComparison compare_layouts(const Context& context, const Program& program, int repeats);

}  // namespace rk
