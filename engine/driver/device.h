// Which device a program computes on: what --device asked for, against what the machine has.
//
// choose_device() is a pure function of a GpuReport, so every way a GPU can fail is tested without
// one; probe_gpus() fills the report. It asks the CUDA driver, so it is called only where a GPU
// could be used: a program that stays on the CPU never touches the driver.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

struct Device {
  bool cuda = false;
  int index = 0;
  std::string name() const;  // "cpu", "cuda:0"
};

// What `text` (a flag's value) asks for. UsageError unless it is auto, cpu, cuda or cuda:<index>.
struct DeviceRequest {
  enum class Kind { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  std::optional<int> index;
  // Without looking at the machine: of "cuda" the first GPU, of "auto" the CPU. Of a text that
  // choose_device()'s device gave (Device::name()), that device.
  Device device() const { return {.cuda = kind == Kind::kCuda, .index = index.value_or(0)}; }
};
DeviceRequest parse_device(std::string_view text);

// CUDA's error codes that need another advice than their text gives.
inline constexpr int kCudaMemoryAllocation = 2;
inline constexpr int kCudaInsufficientDriver = 35;
inline constexpr int kCudaInvalidFunction = 98;  // as 209, of some drivers
inline constexpr int kCudaNoDevice = 100;
inline constexpr int kCudaNoKernelImage = 209;
inline constexpr int kCudaUncorrectableEcc = 214;
inline constexpr int kCudaIllegalAddress = 700;  // the first of those that a kernel ends with
inline constexpr int kCudaLaunchFailure = 719;   // the last of them

// What a program says that a GPU failed while it ran: "[what] <CUDA's words> (error N); <what to
// do>". After most of these errors CUDA answers nothing else until the program ends; what was saved
// stays as it was.
std::string cuda_failure(std::string_view what, std::string_view text, int code);

// What the machine says of its GPUs. Versions are 1000 major + 10 minor, as the CUDA runtime's;
// 0: not there.
struct GpuReport {
  struct Error {
    int code = 0;  // 0: none
    std::string text;
  };
  struct Card {
    std::string name;
    int compute_capability = 0;  // 90: 9.0
    std::int64_t bytes = 0;
  };
  // A library that is loaded when it is first needed.
  struct Library {
    std::string name;  // "cuDNN"
    int least = 0;  // its own number, 90800 for cuDNN 9.8.0; others of that major version are newer
    int loaded = 0;       // 0: could not be loaded, or has no number
    std::string path;     // the file that was loaded
    std::string problem;  // why none was: engine/driver/libraries.h
  };

  bool built = false;                  // this program has GPU code
  int runtime = 0;                     // CUDA it was built with
  int driver = 0;                      // the newest CUDA its driver can run; 0: there is no driver
  std::string architectures;           // what GPU code it has, as for people: "8.x, 9.x and newer"
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES
  Error error;                         // of asking how many GPUs there are
  std::vector<Card> cards;
  std::vector<Library> libraries;
  // Starts CUDA on a card and loads a kernel: 209 where the program has none for it. Called card by
  // card until one works, because it costs memory there and a fraction of a second.
  std::function<Error(int)> start;
};

// Whether this program was built with GPU code.
bool has_gpu_code();

// What this machine says of its GPUs: asks the driver and loads the libraries. Never throws for
// what it finds. Without GPU code everything in it is empty.
GpuReport probe_gpus();

// What was taken, and for `auto` why.
struct DeviceChoice {
  Device device;
  std::string why;  // "NVIDIA H200, 139 GiB" or "the NVIDIA driver ... is too old; ..."
};

// `auto`: the first GPU that works, else the CPU and the reason why no GPU. `cuda`: that GPU, or a
// DeviceError with the reason in one line.
DeviceChoice choose_device(const DeviceRequest& request, const GpuReport& report);

}  // namespace rk
