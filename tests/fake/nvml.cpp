// Stands in for the driver's libnvidia-ml, with one card, in tests/engine/gpu_state_test.cpp.
#include <cstring>

extern "C" {
static bool started = false;
static int card = 0;

int nvmlInit_v2() {
  started = true;
  return 0;
}
int nvmlShutdown() {
  started = false;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  *device = &card;
  return started && std::strcmp(bus, "0000:1B:00.0") == 0 ? 0 : 6;
}
// `kind` of clock: 1, of the SMs, or 2, of the memory.
int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1755 : 3201;
  return device == &card ? 0 : 2;
}
int nvmlDeviceGetMaxClockInfo(void*, int kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1980 : 12345;
  return kind == 1 ? 0 : 3;  // 3: not supported
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  *celsius = 41;
  return sensor == 0 ? 0 : 2;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 512250;
  return 0;
}
}
