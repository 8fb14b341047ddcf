// Runs the rows of a loss with proxies, on the cores of the CPU or as one GPU block each: every row
// writes its loss and overwrites its scores with their gradient.
#pragma once

#include "kernels/launch_on_gpu.h"
#include "losses/rows/cpu_rows.h"
#include "losses/rows/gpu_rows.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rk {

template <class S, class Row> class ProxyRowRunner {
 public:
  // For batches of up to rows x columns scores; reserves everything they need.
  ProxyRowRunner(const Context& context, int rows, int columns) {
    if constexpr (kRunsOnGpu<S>) {
      if (context.on_gpu()) {
        RowScratch planned;
        ProxyRows<Row>::plan(rows, columns, &planned);
        blocks_.emplace(context, planned);
        return;
      }
    }
    threads_.emplace(context, Row::scratch(columns));
  }

  void run(const Context& context, const ProxyBatch<S>& batch,
           const typename Row::Params& params) const {
    if constexpr (kRunsOnGpu<S>) {
      if (blocks_) return ProxyRows<Row>::run(batch, params, blocks_->rows(), context.stream());
    }
    threads_->run(context, batch.rows, nullptr,
                  [&](const SerialTeam& team, std::int64_t row, std::byte* memory) {
                    Row::row(team, params, batch, static_cast<int>(row), memory);
                  });
  }

  std::int64_t bytes() const { return blocks_ ? blocks_->bytes() : threads_->bytes(); }

 private:
  // One of them, by device.
  std::optional<ThreadScratch> threads_;
  std::optional<BlockScratch> blocks_;
};

}  // namespace rk
