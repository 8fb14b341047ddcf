// Writes diverged.json into the run's folder when training diverges, to help find the cause.
//
//   what, step, epoch, batch, learning_rate, loss, gradient_norm (null: not finite, or not reached)
//   images                  of the batch, named as in messages
//   layers_of               of several processes: the images that first_layer_not_finite and layers
//                           come from
//   first_layer_not_finite  in forward order; null: none. A maximum pool, or a ReLU that a
//                           library fuses into a layer, can hide a NaN; then see the gradients
//   layers                  name, max_abs of the finite output values, number of others
//   parameters_not_finite, gradients_not_finite   names
#pragma once

#include "data/sources/dataset.h"
#include "training/trainer.h"

#include <cstdint>
#include <string>

namespace rk {

// Runs the batch forward once more, after which the trainer must not be used. Returns the end of
// the message about `what`: where the file is, or why there is none. step: the step of the last
// batch, which may have failed in this step or only after it.
std::string dump_divergence(const std::string& folder, const std::string& what, Trainer& trainer,
                            const Dataset& data, std::int64_t step);

}  // namespace rk
