// Between a network in memory and a checkpoint: parameters and running statistics by torchvision's
// names in canonical order (OIHW), the optimizer's state by the same names.
#pragma once

#include "engine/tape/parameters.h"
#include "layers/networks/network.h"
#include "training/optimizer.h"
#include "weights/checkpoint.h"

namespace rk {

// What layers/networks/network.h needs to build the network that a checkpoint describes. UsageError
// where it names an unknown architecture or pooling.
NetworkSpec network_spec(const ModelDescription& model, BatchNormMode mode);

void save_parameters(const Parameters& parameters, CheckpointWriter& writer);
// All of the network's; what does not fit is an InputError with every name.
void load_parameters(const Checkpoint& checkpoint, Parameters& parameters);
// All of the loss's (its proxies); none is nothing to do.
void load_loss_parameters(const Checkpoint& checkpoint, Parameters& parameters);
// As a starting point: the embedding layer may be missing or of another size and then stays as it
// is; what the loss learns stays as it is too, for other data have other classes. Returns whether
// the embedding layer was taken.
bool load_starting_point(const Checkpoint& checkpoint, Parameters& parameters);

void save_optimizer(const Optimizer& optimizer, const Parameters& parameters,
                    CheckpointWriter& writer);
void load_optimizer(const Checkpoint& checkpoint, const Parameters& parameters,
                    Optimizer& optimizer);

}  // namespace rk
