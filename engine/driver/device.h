// Chooses the device a program computes on: --device against what the machine has.
//
// choose_device() is a pure function of a GpuReport, so every way in which a GPU can fail is tested
// without one; probe_gpus() fills the report. It calls the CUDA driver, so it is used only where a
// GPU could be: a program that stays on the CPU never touches the driver.
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

// What --device asks for. parse_device() throws UsageError unless `text` is auto, cpu, cuda or
// cuda:<index>.
struct DeviceRequest {
  enum class Kind { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  std::optional<int> index;
  // The device without looking at the machine: the first GPU for "cuda", the CPU for "auto".
  // Parsing a Device::name() gives that device back.
  Device device() const { return {.cuda = kind == Kind::kCuda, .index = index.value_or(0)}; }
};
DeviceRequest parse_device(std::string_view text);

// CUDA error codes that need other advice than CUDA's own text.
inline constexpr int kCudaMemoryAllocation = 2;
inline constexpr int kCudaInsufficientDriver = 35;
inline constexpr int kCudaInvalidFunction = 98;  // means the same as 209 in some drivers
inline constexpr int kCudaNoDevice = 100;
inline constexpr int kCudaNoKernelImage = 209;
inline constexpr int kCudaUncorrectableEcc = 214;

// Whether all work on the GPU ends with this error, as after a kernel's illegal address: until the
// program ends, every later call returns it, also one that has nothing to do with its cause.
bool ends_all_work(int code);

// The message for a GPU that fails during a run: "[what] <CUDA's text> (error N); <what to do>".
// Files saved before stay intact.
std::string cuda_failure(std::string_view what, std::string_view text, int code);

// What the machine reports about its GPUs. Versions are 1000 major + 10 minor, as the CUDA
// runtime's; 0: not there.
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
  // A library that is loaded at first use.
  struct Library {
    std::string name;  // "cuDNN"
    int least = 0;  // its own number, 90800 for cuDNN 9.8.0; others of that major version are newer
    int loaded = 0;       // 0: could not be loaded, or has no number
    std::string path;     // the file that was loaded
    std::string problem;  // why it could not be loaded: engine/driver/libraries.h
  };

  bool built = false;                  // this program has GPU code
  int runtime = 0;                     // CUDA version of the build
  int driver = 0;                      // the newest CUDA that the driver can run; 0: there is no
                                       // driver
  std::string architectures;           // compiled GPU code, for people: "8.x, 9.x and newer"
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES
  Error error;                         // from counting the GPUs
  std::vector<Card> cards;
  std::vector<Library> libraries;
  // Starts CUDA on a card and loads a kernel; code 209 if the program has no code for the card.
  // Called card by card until one works, because it costs GPU memory and a fraction of a second.
  std::function<Error(int)> start;
};

// Whether this program was built with GPU code.
bool has_gpu_code();

// Asks the driver about this machine's GPUs and loads the libraries. Never throws for what it
// finds. A build without GPU code returns an empty report.
GpuReport probe_gpus();

// The device taken and, for `auto`, the reason.
struct DeviceChoice {
  Device device;
  std::string why;  // "NVIDIA H200, 139 GiB" or "the NVIDIA driver ... is too old; ..."
};

// `auto`: the first GPU that works, else the CPU and the reason why no GPU works. `cuda`: the GPU
// asked for (without an index the first that works), or a DeviceError with the reason in one line.
DeviceChoice choose_device(const DeviceRequest& request, const GpuReport& report);

}  // namespace rk
