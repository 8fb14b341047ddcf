// nsl and proxy_anchor (losses/proxy.h) on a GPU: proxies are one more input in its memory, their
// gradient one more output. A proxy that has no direction, or is not finite, makes loss and
// gradients NaN, and result() throws the InputError of the CPU.
#pragma once

#include "kernels/rows/proxy_rows.h"
#include "losses/cuda/loss.h"

namespace rk {

std::unique_ptr<DeviceLoss> make_device_nsl(const CudaContext& cuda, float scale);
std::unique_ptr<DeviceLoss> make_device_proxy_anchor(const CudaContext& cuda,
                                                     const ProxyAnchorRow<float>::Params& params);

}  // namespace rk
