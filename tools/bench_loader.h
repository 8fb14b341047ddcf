// bench loader: images a second out of the prefetching loader, beside its stages alone on a thread:
//   decode_ms  file to pixels (or drawing a glyph), an image
//   resize_ms  crop, resize and augmentation to uint8, an image
//   float_ms   uint8 to normalised float32, an image (the consumer's work, in no other number here)
//   share      (decode_ms + resize_ms) / workers, the least time an image could take, over the time
//              it took; above 1 only where the cache spares decoding (--cache)
// All medians over the repeats, each with _min and _max beside it.
#pragma once

#include "tools/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_loader();

}  // namespace rk
