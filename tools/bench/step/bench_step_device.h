// `bench step` on a GPU: whole training steps through the trainer, each overlapped with the upload
// of the next batch, and the roofline of the network's convolutions.
#pragma once

#include "layers/graphs/graph_runner.h"
#include "tools/bench/timing.h"
#include "training/trainer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct DeviceStepTimes {
  static constexpr int kTogether = 50;

  Timing step;            // ms, from one result on the host to the next
  double card_ms = 0;     // ms a step by the GPU's clock, over kTogether in a row
  double floor_ms = 0;    // see convolution_floor()
  double copy_rate = 0;   // bytes per second, measured
  double math_rate = 0;   // multiply-adds per second by the datasheet; 0: unknown GPU
  std::size_t bytes = 0;  // reserved
  std::string device_name;
  std::string ways;       // Program::implementations()
  bool captured = false;  // the timed steps replayed a CUDA graph
  PlansTaken plans;
  double start_seconds = 0;  // to build the trainer, mostly cuDNN's graphs
};

// plans: a file with the engines of the graphs; empty: none.
DeviceStepTimes time_device_step(const Context& context, const TrainerOptions& options, int repeats,
                                 std::uint64_t seed, const std::string& plans);

// Dense multiply-adds per second of a GPU's tensor cores (fp32: of its ordinary cores), from
// NVIDIA's datasheets; 0 for unknown names.
double dense_rate(const std::string& gpu, Precision precision);

// Lower bound of the time of a step's convolutions in milliseconds: each forward pass, weight
// gradient and input gradient takes at least the longer of its bytes at copy_rate and its
// multiply-adds at math_rate. Everything between the convolutions counts as nothing.
double convolution_floor(const Program& program, Precision precision, double copy_rate,
                         double math_rate);

}  // namespace rk
