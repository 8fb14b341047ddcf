// `bench loader` on a GPU: the loader's batches into a network's input, as training takes them
// (layers/gpu/input.h): each goes up while the kernel makes numbers of the one before.
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
  std::int64_t images = 0;  // to take from the loader
  int ready = 0;  // batches to let go of before the time is taken: they may be made by then
  std::int64_t batch = 0;  // the most that it gives at once
  std::int64_t side = 0;
};

// Milliseconds an image.
struct DeviceLoaderTimes {
  double loader = 0;        // from the files to numbers on the GPU, all beside one another
  double upload = 0;        // a batch's way up alone: page-locked memory, bus, place
  double input = 0;         // the kernel alone, by the GPU's clock
  std::vector<float> last;  // what the network would have read last
};

// crops [batch, side, side, 3]: for what is timed alone.
DeviceLoaderTimes time_device_loader(const Context& context, const DeviceLoaderShape& shape,
                                     const FloatTable& table, Loader& loader,
                                     std::span<const std::uint8_t> crops);

// The least that the GPU's part of an image takes. Rates in bytes a second.
struct DeviceLoaderFloor {
  std::int64_t upload_bytes = 0;
  std::int64_t input_bytes = 0;  // read, and written as the network has its numbers
  double upload_rate = 0;        // gpu_upload_rate()
  double copy_rate = 0;          // gpu_copy_rate()
  double upload_ms = 0;          // upload_bytes at upload_rate
  double input_ms = 0;           // input_bytes at copy_rate

  // Of an image that costs the host's threads that long: all of it goes on side by side.
  double longest(double host_ms) const { return std::max({host_ms, upload_ms, input_ms}); }
};
DeviceLoaderFloor device_loader_floor(Precision precision, std::int64_t side, double upload_rate,
                                      double copy_rate);

}  // namespace rk
