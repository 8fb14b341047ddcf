// What the run of a checkpoint recorded of its epochs: what the checkpoint itself knows, and the
// epochs after it where metrics.jsonl of the same run lies beside it.
#pragma once

#include "retrieval/report/learning_record.h"
#include "weights/checkpoint.h"

#include <optional>

namespace rk {

// Nothing for weights that are of no run. Lines that are damaged end the record, with a note.
std::optional<LearningRecord> read_learning_record(const Checkpoint& checkpoint);

}  // namespace rk
