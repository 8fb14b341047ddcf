// eval: retrieval metrics of embeddings in files, or of a data set through a checkpoint's network.
//
//   eval --embeddings e.h5 [--gallery g.h5] [--per-query] [--json out.json]
//   eval --checkpoint RUN/best.h5 --data SPEC [--split test] [--save-embeddings e.h5]
//
// Prints a table and writes {"metrics": {...}, ...}; see retrieval/evaluate.h for the definitions
// and retrieval/files/embeddings_file.h for the files. A bad file gives exit code 3 and no JSON.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_eval();

}  // namespace rk
