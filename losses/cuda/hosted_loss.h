// A loss on a GPU behind the interface of those on the CPU: embeddings come from the host, and the
// gradient goes back there. For probe and tests; training keeps both on the GPU.
#pragma once

#include "losses/registry.h"

namespace rk {

// DeviceError where the GPU does not work or the build has no GPU code for this loss.
std::unique_ptr<Loss<float>> make_hosted_loss(int device, const LossSpec& spec);

}  // namespace rk
