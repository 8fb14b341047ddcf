// nsl and proxy_anchor (losses/proxy.h) on a GPU: proxies are one more input in its memory, their
// gradient one more output. A proxy of length 0 has no direction: the loss is then NaN.
#pragma once

#include "kernels/proxy_rows.h"
#include "losses/device_loss.h"

namespace rk {

std::unique_ptr<DeviceLoss> make_device_nsl(const CudaContext& cuda, float scale);
std::unique_ptr<DeviceLoss> make_device_proxy_anchor(const CudaContext& cuda,
                                                     const ProxyAnchorRow<float>::Params& params);

}  // namespace rk
