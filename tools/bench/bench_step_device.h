// `bench step` on a GPU: whole training steps through the trainer, the next batch going up beside
// each, and the roofline of the network's convolutions.
#pragma once

#include "layers/graphs/graph_run.h"
#include "tools/cli/timing.h"
#include "training/trainer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct DeviceStepTimes {
  static constexpr int kTogether = 50;

  Timing step;            // ms, from a result on the host to the next
  double card_ms = 0;     // a step by the GPU's own clock, of kTogether on end
  double floor_ms = 0;    // see convolution_floor()
  double copy_rate = 0;   // bytes a second, measured
  double math_rate = 0;   // multiply-adds a second of the datasheet; 0: the GPU is not known
  std::size_t bytes = 0;  // reserved
  std::string device_name;
  std::string ways;       // Program::ways()
  bool captured = false;  // the timed steps were replays
  PlansTaken plans;
  double start_seconds = 0;  // to build the trainer, most of it cuDNN's graphs
};

// plans: a file for the engines of the graphs, empty: none.
DeviceStepTimes time_device_step(const Context& context, const TrainerOptions& options, int repeats,
                                 std::uint64_t seed, const std::string& plans);

// Dense multiply-adds a second of a GPU's tensor cores (fp32: of its ordinary ones), from NVIDIA's
// datasheets; 0 where the name is not known.
double dense_rate(const std::string& gpu, Precision precision);

// The least time for a step's convolutions, milliseconds: each forward, weight gradient and input
// gradient takes at least its bytes at copy_rate and its multiply-adds at math_rate, whichever is
// longer. Everything between the convolutions counts nothing.
double convolution_floor(const Program& program, Precision precision, double copy_rate,
                         double math_rate);

}  // namespace rk
