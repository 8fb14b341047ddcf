// `bench loader` on a GPU: feeds the loader's batches into a network's input as training does
// (layers/gpu/input.h): each batch is uploaded while the kernel converts the previous one.
#pragma once

#include "data/images/transform.h"
#include "data/loader/loader.h"
#include "engine/device/context.h"
#include "engine/device/precision.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace rk {

struct DeviceLoaderShape {
  Precision precision = Precision::kFp32;
  std::int64_t images = 0;  // to be taken from the loader
  int ready = 0;  // batches to discard before timing starts, as they may be prefetched already
  std::int64_t batch = 0;  // the largest batch
  std::int64_t side = 0;
};

// Milliseconds per image.
struct DeviceLoaderTimes {
  double loader = 0;        // from files to numbers on the GPU, with all stages overlapped
  double stage = 0;         // the host's copy into page-locked memory alone, by its clock
  double upload = 0;        // what is left of the way over the bus when stage() returns, and a copy
                            // on the card, by its clock
  double input = 0;         // the conversion kernel alone, by the GPU's clock
  std::vector<float> last;  // the network's input for the last batch
};

// crops [batch, side, side, 3]: the input of the stages that are timed alone.
DeviceLoaderTimes time_device_loader(const Context& context, const DeviceLoaderShape& shape,
                                     const FloatTable& table, Loader& loader,
                                     std::span<const std::uint8_t> crops);

// Lower bounds of the GPU's work for an image. Rates in bytes per second.
struct DeviceLoaderFloor {
  std::int64_t upload_bytes = 0;
  std::int64_t input_bytes = 0;  // read as bytes and written in the network's type
  double upload_rate = 0;        // gpu_upload_rate()
  double copy_rate = 0;          // gpu_copy_rate()
  double upload_ms = 0;          // upload_bytes at upload_rate
  double input_ms = 0;           // input_bytes at copy_rate

  // Lower bound for an image that takes the host's threads `host_ms`: all stages overlap.
  double longest(double host_ms) const { return std::max({host_ms, upload_ms, input_ms}); }
};
DeviceLoaderFloor device_loader_floor(Precision precision, std::int64_t side, double upload_rate,
                                      double copy_rate);

}  // namespace rk
