// What fits into the memory of a GPU or of the machine, and what to advise if something does not.
// Bytes throughout; pure functions, so that all of it is tested without a GPU.
//
//   needed = fixed + images per_image  [+ in_parts]
#pragma once

#include "engine/base/error.h"

#include <cstdint>
#include <string>

namespace rk {

struct MemoryNeed {
  std::int64_t fixed = 0;      // independent of the batch: parameters, optimizer, workspaces, the
                               // loss
  std::int64_t per_image = 0;  // for each image in the network at the same time
  std::int64_t in_parts = 0;   // more for a batch that goes through the network in chunks
  // Processes that share a batch; those of one machine share its memory too, and the numbers above
  // are sums over them. Images and batches are those of each process.
  int processes = 1;
};

enum class MemoryOf : std::uint8_t { kGpu, kMachine };

// The number of images that fit at the same time as a whole batch; 0 if not even one does.
std::int64_t images_that_fit(const MemoryNeed& need, std::int64_t free);

// The largest divisor of `images` that is at most `most`; both at least 1.
std::int64_t largest_divisor(std::int64_t images, std::int64_t most);

// The largest divisor of `batch` that fits as a chunk; 0 if not even one image does.
std::int64_t chunk_that_fits(const MemoryNeed& need, std::int64_t free, std::int64_t batch);

// Advice if the network takes `images` at a time (all of `batch`, or a chunk) and they do not fit:
// one line for an error, naming the largest --chunk that divides the batch and the largest --batch
// (that of all processes, of each a multiple of 8; none below 8). Empty if they fit.
std::string fitting_advice(const MemoryNeed& need, std::int64_t free, std::int64_t batch,
                           std::int64_t images, MemoryOf where = MemoryOf::kGpu);

// fitting_advice() as an error, for callers that may use the chunk instead.
class TooLittleMemory : public DeviceError {
 public:
  TooLittleMemory(const std::string& advice, std::int64_t chunk, MemoryOf where)
      : DeviceError(advice), chunk_(chunk), where_(where) {}
  std::int64_t chunk() const { return chunk_; }  // the chunk that fits; 0: not even one image does
  MemoryOf where() const { return where_; }

 private:
  std::int64_t chunk_;
  MemoryOf where_;
};
}  // namespace rk
