// The state a GPU is in, as its driver tells it through NVML (libnvidia-ml, loaded when asked): a
// time is worth little without the clocks it was taken at. It is read, never set.
#pragma once

#include <optional>
#include <string>

namespace rk {

struct GpuState {
  int sm_mhz = 0, memory_mhz = 0;            // now
  int most_sm_mhz = 0, most_memory_mhz = 0;  // that it may take
  double watts = 0;
  int celsius = 0;
};

// Nothing where NVML is missing or does not know the card. `bus` names it: "0000:1B:00.0".
std::optional<GpuState> gpu_state(const std::string& bus,
                                  const std::string& library = "libnvidia-ml.so.1");

// Where CUDA's device `index` sits; empty where there is none.
std::string gpu_bus(int index);

}  // namespace rk
