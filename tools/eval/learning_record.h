// Reads the record of a run's epochs: those in the checkpoint itself, and later ones if
// metrics.jsonl of the same run lies beside it.
#pragma once

#include "retrieval/report/learning_record.h"
#include "weights/checkpoint.h"

#include <optional>

namespace rk {

// Returns nullopt for weights without a run. A damaged line ends the record, with a note.
std::optional<LearningRecord> read_learning_record(const Checkpoint& checkpoint);

}  // namespace rk
