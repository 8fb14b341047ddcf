// Makes the implementation of a loss's rows for a context's device.
#pragma once

#include "kernels/launch_on_gpu.h"
#include "losses/rows/cpu_rows.h"
#include "losses/rows/gpu_rows.h"
#include "losses/rows/pair_rows.h"

#include <memory>

namespace rk {

// For batches of up to `shape`; reserves everything they need.
template <class S, class Row>
std::unique_ptr<Rows<S, Row>> make_rows(const Context& context, const typename Row::Params& params,
                                        const LossShape& shape) {
  if constexpr (kRunsOnGpu<S>) {
    if (context.on_gpu()) return std::make_unique<GpuRows<Row>>(context, params, shape);
  }
  if constexpr (kPairRow<Row, S>) {
    return std::make_unique<PairRows<S, Row>>(context, params, shape);
  } else {
    return std::make_unique<CpuRows<S, Row>>(context, params, shape);
  }
}

}  // namespace rk
