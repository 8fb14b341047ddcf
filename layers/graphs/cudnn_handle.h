// cuDNN's handle of a context, for those who run engines themselves.
#pragma once

#include "engine/device/context.h"
#include "layers/graphs/engines.h"

namespace rk {

// On the context's stream; created at its first use. Defined where the context's other cuDNN state
// is, in graph_runner.cpp.
const cudnn::Handle& cudnn_handle(const Context& context);

}  // namespace rk
