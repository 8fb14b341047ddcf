#include "engine/driver/gpu_state.h"

#include "engine/system/dynamic_library.h"

namespace rk {
namespace {

// The part of NVML's interface used here: its header does not come with every toolkit.
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr int kGpuSensor = 0;
using Start = int();
using ByBus = int(const char* bus, NvmlDevice* device);
using ByKind = int(NvmlDevice device, int kind, unsigned* value);
using Power = int(NvmlDevice device, unsigned* milliwatts);

}  // namespace

std::optional<GpuState> gpu_state(const std::string& bus, const std::string& library) {
  const DynamicLibrary nvml(library);
  auto* start = nvml.find<Start>("nvmlInit_v2");
  auto* stop = nvml.find<Start>("nvmlShutdown");
  auto* by_bus = nvml.find<ByBus>("nvmlDeviceGetHandleByPciBusId_v2");
  auto* clock = nvml.find<ByKind>("nvmlDeviceGetClockInfo");
  auto* most = nvml.find<ByKind>("nvmlDeviceGetMaxClockInfo");
  auto* temperature = nvml.find<ByKind>("nvmlDeviceGetTemperature");
  auto* power = nvml.find<Power>("nvmlDeviceGetPowerUsage");
  if (!start || !stop || !by_bus || !clock || !most || !temperature || !power) return {};
  if (start() != kNvmlSuccess) return {};
  std::optional<GpuState> state;
  NvmlDevice device = nullptr;
  if (by_bus(bus.c_str(), &device) == kNvmlSuccess) {
    // A value that this card does not have stays 0.
    const auto value = [&](ByKind* ask, int kind) {
      unsigned result = 0;
      return ask(device, kind, &result) == kNvmlSuccess ? static_cast<int>(result) : 0;
    };
    unsigned milliwatts = 0;
    if (power(device, &milliwatts) != kNvmlSuccess) milliwatts = 0;
    state = {.sm_mhz = value(clock, kSmClock),
             .memory_mhz = value(clock, kMemoryClock),
             .most_sm_mhz = value(most, kSmClock),
             .most_memory_mhz = value(most, kMemoryClock),
             .watts = milliwatts * 1e-3,
             .celsius = value(temperature, kGpuSensor)};
  }
  stop();
  return state;
}

}  // namespace rk
