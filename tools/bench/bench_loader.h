// bench loader: images a second out of the prefetching loader, beside its stages alone on a thread:
//   decode_ms  file to pixels (or drawing a glyph), an image
//   resize_ms  crop, resize and augmentation to uint8, an image
//   float_ms   uint8 to normalised float32, an image (the consumer's work, in no other number here)
//   share      (decode_ms + resize_ms) / workers, the least time an image could take, over the time
//              it took; of decode_ms as much as there are images that the cache does not keep
// The time is that of timed_images: rounds through the images, for thirty batches or more, behind
// those that were made ahead of it.
// On a GPU images a second into a network's input there (tools/bench/bench_loader_device.h), and
// alone:
//   upload_ms  a batch into page-locked memory and up, an image
//   input_ms   the kernel that makes numbers of it there, an image, by the GPU's clock
//   upload_floor_ms  upload_bytes of an image at the rate of a plain copy from page-locked memory
//   input_floor_ms   input_bytes, read and written, at the rate of a copy within the GPU's memory
//   floor_ms   the longest of what share has above the line and these two, which share is of
// All medians over the repeats, each with _min and _max beside it.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_loader();

}  // namespace rk
