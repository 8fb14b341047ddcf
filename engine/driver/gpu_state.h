// A GPU's clocks, power and temperature, read through NVML (libnvidia-ml, loaded on demand): a
// timing means little without the clocks it was taken at. The state is read, never set.
#pragma once

#include <optional>
#include <string>

namespace rk {

struct GpuState {
  int sm_mhz = 0, memory_mhz = 0;            // now
  int most_sm_mhz = 0, most_memory_mhz = 0;  // the highest clocks the card allows
  double watts = 0;
  int celsius = 0;
};

// Empty if NVML is missing or does not know the card. `bus` is the card's PCI address:
// "0000:1B:00.0".
std::optional<GpuState> gpu_state(const std::string& bus,
                                  const std::string& library = "libnvidia-ml.so.1");

// The PCI address of CUDA's device `index`; empty if there is no such device.
std::string gpu_bus(int index);

}  // namespace rk
