// The memory of a training step's loss, which grows with the whole batch, however small the
// network's chunks are.
#pragma once

#include "training/trainer_options.h"

#include <cstdint>

namespace rk {

// Bytes of the matrix of scores, and of what the rows of the most demanding loss store besides (on
// a GPU); of the memory's columns and the batch that is about to join them.
std::int64_t loss_bytes(const TrainerOptions& options, bool on_gpu);

}  // namespace rk
