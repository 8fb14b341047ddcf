// A driver's libnvidia-ml that knows one card, for tests/engine/gpu_state_test.cpp.
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
// A kind is 1, the SMs', or 2, the memory's.
int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1755 : 3201;
  return device == &card ? 0 : 2;
}
int nvmlDeviceGetMaxClockInfo(void*, int kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1980 : 12345;
  return kind == 1 ? 0 : 3;  // it does not say
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
