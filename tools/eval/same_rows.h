// Whether two evaluations are of the same pictures, so that their difference is that of the
// embeddings.
#pragma once

#include "tools/eval/inputs/described_rows.h"

namespace rk {

// Throws InputError naming both files and the first row that differs, of the queries or of the
// galleries: how many there are, labels (by name, if they have names), cameras, or, where both hold
// paths, file names. Folders may differ, as between machines. Each gallery must have been matched
// with its queries.
void check_same_rows(const EvaluatedRows& first, const EvaluatedRows& second);

}  // namespace rk
