// bench loader: images per second from the prefetching loader, beside its stages timed alone on one
// thread:
//   decode_ms  file to pixels (or drawing a glyph), per image
//   resize_ms  crop, resize and augmentation to uint8, per image
//   float_ms   uint8 to normalised float32, per image (work of the consumer, in no other number)
//   share      the least possible time per image, (decode_ms + resize_ms) / workers, over the
//              measured time; decode_ms is scaled by the share of images that are not cached
// The timed part is timed_images images: repeated passes over the images, thirty batches or more,
// after the prefetched batches have been discarded.
// On a GPU, images per second into a network's input there (tools/bench/bench_loader_device.h), and
// timed alone:
//   stage_ms   the host's copy of a batch into page-locked memory, per image
//   upload_ms  what is left of the upload after that copy, and a copy on the card, per image
//   input_ms   the kernel that converts it to the network's input, per image, by the GPU's clock
//   upload_floor_ms  upload_bytes of an image at the rate of a plain copy from page-locked memory
//   input_floor_ms   input_bytes, read and written, at the rate of a copy within the GPU's memory
//   floor_ms   the longest of the numerator of share above and these two floors; on a GPU this is
//              the numerator of share
// All are medians over the repeats, each with _min and _max beside it.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_loader();

}  // namespace rk
