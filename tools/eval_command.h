// eval: retrieval metrics of embeddings in files.
//
//   eval --embeddings e.h5 [--gallery g.h5] [--per-query] [--json out.json]
//
// Prints a table and writes {"metrics": {...}, ...}; see retrieval/evaluate.h for the definitions and
// retrieval/embeddings_file.h for the files. A bad file is exit code 3 and leaves no JSON.
#pragma once

#include "tools/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_eval();

}  // namespace rk
