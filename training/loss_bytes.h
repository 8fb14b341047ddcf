// The memory of a training step's loss, which grows with the whole batch, however small the
// network's chunks are.
#pragma once

#include "training/trainer_options.h"

#include <cstdint>

namespace rk {

// Bytes of the matrix of scores; of what the loss keeps of each row (Loss::numbers_per_row); on a
// GPU, of what the most demanding loss stores besides for the rows that run at once; of the
// memory's columns and the batch that is about to join them; of proxies at unit length. A few
// numbers for each row are left to the reserve.
std::int64_t loss_bytes(const TrainerOptions& options, bool on_gpu);

}  // namespace rk
