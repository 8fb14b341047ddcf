// Saves and loads a network's state: parameters and running statistics under torchvision's names in
// canonical order (OIHW), the optimizer's state under the same names.
#pragma once

#include "engine/tape/parameters.h"
#include "layers/networks/network.h"
#include "training/optimizer.h"
#include "weights/checkpoint.h"

namespace rk {

// The specification (layers/networks/network.h) of the network that a checkpoint describes. Throws
// UsageError for an unknown architecture or pooling.
NetworkSpec network_spec(const ModelDescription& model, BatchNormMode mode);

void save_parameters(const Parameters& parameters, CheckpointWriter& writer);
// All of the network's parameters; throws InputError with every name that does not fit.
void load_parameters(const Checkpoint& checkpoint, Parameters& parameters);
// All of the loss's parameters (its proxies); does nothing if it has none.
void load_loss_parameters(const Checkpoint& checkpoint, Parameters& parameters);
// Loads a starting point: if the embedding layer is missing or has another size, the present one
// stays; the loss's parameters stay too, because other data have other classes. Returns whether the
// embedding layer was loaded.
bool load_starting_point(const Checkpoint& checkpoint, Parameters& parameters);

void save_optimizer(const Optimizer& optimizer, const Parameters& parameters,
                    CheckpointWriter& writer);
void load_optimizer(const Checkpoint& checkpoint, const Parameters& parameters,
                    Optimizer& optimizer);

}  // namespace rk
