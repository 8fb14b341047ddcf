// bench loader: images per second from the prefetching loader, beside its stages timed alone on one
// thread:
//   decode_ms  file to pixels (or drawing a glyph), an image
//   resize_ms  crop, resize and augmentation to uint8, an image
//   float_ms   uint8 to normalised float32, an image (the consumer's work, in no other number here)
//   share      (decode_ms + resize_ms) / workers, the least time an image could take, over the time
//              it took; of decode_ms as much as there are images that the cache does not keep
// The timed part is timed_images images: repeated passes over the images, thirty batches or more,
// after the prefetched batches have been discarded. On a GPU, images per second into a network's
// input on the GPU (tools/bench/bench_loader_device.h), and timed alone:
//   upload_ms  a batch into page-locked memory and up, an image
//   input_ms   the kernel that makes numbers of it there, an image, by the GPU's clock
//   upload_floor_ms  upload_bytes of an image at the rate of a plain copy from page-locked memory
//   input_floor_ms   input_bytes, read and written, at the rate of a copy within the GPU's memory
//   floor_ms   the longest of what share has above the line and these two, which share is of
// All are medians over the repeats, each with _min and _max beside it.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_loader();

}  // namespace rk
