// The rows of a loss with proxies: each writes its loss and overwrites its scores with their
// gradient. Rows run on the cores of the CPU, or as one GPU block each.
#pragma once

#include "losses/rows/cpu_rows.h"
#include "losses/rows/gpu_rows.h"

#include <cstdint>
#include <memory>

namespace rk {

template <class S, class Row> class ProxyRowsBody {
 public:
  using Params = typename Row::Params;

  ProxyRowsBody() = default;
  ProxyRowsBody(const ProxyRowsBody&) = delete;
  ProxyRowsBody& operator=(const ProxyRowsBody&) = delete;
  virtual ~ProxyRowsBody() = default;

  virtual void run(const Context& context, const ProxyBatch<S>& batch, const Params& params) = 0;
  virtual std::int64_t bytes() const = 0;
};

template <class S, class Row> class CpuProxyRows final : public ProxyRowsBody<S, Row> {
 public:
  using typename ProxyRowsBody<S, Row>::Params;

  CpuProxyRows(const Context& context, int columns) : scratch_(context, Row::scratch(columns)) {}
  void run(const Context& context, const ProxyBatch<S>& batch, const Params& params) override {
    scratch_.run(context, batch.rows, nullptr,
                 [&](const SerialTeam& team, std::int64_t row, std::byte* memory) {
                   Row::row(team, params, batch, static_cast<int>(row), memory);
                 });
  }
  std::int64_t bytes() const override { return scratch_.bytes(); }

 private:
  ThreadScratch scratch_;
};

template <class Row> class GpuProxyRows final : public ProxyRowsBody<float, Row> {
 public:
  using typename ProxyRowsBody<float, Row>::Params;

  GpuProxyRows(const Context& context, int rows, int columns)
      : scratch_(context, planned(rows, columns)) {}
  void run(const Context& context, const ProxyBatch<float>& batch, const Params& params) override {
    ProxyRows<Row>::run(batch, params, scratch_.rows(), context.stream());
  }
  std::int64_t bytes() const override { return scratch_.bytes(); }

 private:
  static RowScratch planned(int rows, int columns) {
    RowScratch scratch;
    ProxyRows<Row>::plan(rows, columns, &scratch);
    return scratch;
  }

  BlockScratch scratch_;
};

// For batches of up to rows x columns scores; reserves everything they need.
template <class S, class Row>
std::unique_ptr<ProxyRowsBody<S, Row>> make_proxy_rows(const Context& context, int rows,
                                                       int columns) {
  if constexpr (kRunsOnGpu<S>) {
    if (context.on_gpu()) return std::make_unique<GpuProxyRows<Row>>(context, rows, columns);
  }
  return std::make_unique<CpuProxyRows<S, Row>>(context, columns);
}

}  // namespace rk
