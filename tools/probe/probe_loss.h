// probe --loss: computes one loss and its gradient on the embeddings of a file.
//
//   probe --loss NAME[:k=v,...] --in e.h5 [--labels y.npy] [--out g.h5] [--normalize] [--check]
//
// Reads the file described in tools/common/loss_file.h; writes /loss (float64 scalar),
// /valid_queries, /grad float32 and, for losses with proxies, /grad_proxies. The gradient is with
// respect to the embeddings as given; --normalize includes their normalisation in the loss. --check
// compares the gradient, recomputed in double, with central differences along random directions.
// --help lists the parameters of --loss.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_probe_loss();

}  // namespace rk
