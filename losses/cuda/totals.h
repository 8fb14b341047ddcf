// Between the similarities and the rows of a loss on a GPU: Row::measure, the totals over all rows,
// and what follows from them (kernels/rows/batch_numbers.h), without the host. Losses whose way
// from totals to rows is another specialise DeviceTotals.
#pragma once

#include "engine/device/cuda/buffer.h"
#include "kernels/cuda/rows.h"
#include "kernels/launch.h"
#include "kernels/rows/finish_rows.h"
#include "losses/frame/loss.h"

namespace rk {

template <class Row> class TotalsToSlopes {
 public:
  using Params = typename Row::Params;

  // Formula: as in losses/frame/row_loss.h, planned. Tells its params where row() will find slopes.
  template <class Formula> void plan(const LossShape& shape, Formula& formula) {
    const auto rows = static_cast<int>(shape.rows);
    width_ = Row::stats(formula.params);
    stats_ = DeviceBuffer::of<float>(shape.rows * width_);
    totals_ = DeviceBuffer::of<double>(width_);
    slopes_ = DeviceBuffer::of<float>(Row::slopes(formula.params, rows));
    part_ = DeviceBuffer::of<double>(1);
    if constexpr (requires { Row::place(formula.params, slopes()); }) {
      Row::place(formula.params, slopes());
    }
  }

  // `params` in device memory; they are finished here.
  void launch(const CudaContext& cuda, const RowBatch& rows, const BatchNumbers* numbers,
              Params* params, const RowScratch& scratch) const {
    measure(cuda, rows, params, scratch);
    column_sums(stats(), rows.rows, width_, totals_.as<double>(), cuda.stream());
    rk::launch(FinishRows<Row>{numbers, totals_.as<double>(), params, slopes(), part()},
               cuda.stream());
  }

  static constexpr int kKernels = 3;
  double* part() const { return part_.as<double>(); }  // of the loss
  float* slopes() const { return slopes_.as<float>(); }
  std::size_t bytes() const {
    return stats_.bytes() + totals_.bytes() + slopes_.bytes() + part_.bytes();
  }

  // The first step alone.
  void measure(const CudaContext& cuda, const RowBatch& rows, const Params* params,
               const RowScratch& scratch) const {
    GalleryRows<Row>::measure(rows, params, stats(), width_, scratch, cuda.stream());
  }
  float* stats() const { return stats_.as<float>(); }

 private:
  int width_ = 0;
  DeviceBuffer stats_;   // [rows, width]
  DeviceBuffer totals_;  // [width]
  DeviceBuffer slopes_;
  DeviceBuffer part_;  // [1]
};

template <class Row> class DeviceTotals : public TotalsToSlopes<Row> {};

// Of rows that are not coupled.
template <class Row>
requires(!requires(const typename Row::Params& params) {
  Row::stats(params);
}) class DeviceTotals<Row> {
 public:
  template <class Formula> void plan(const LossShape&, Formula&) {}
  void launch(const CudaContext&, const RowBatch&, const BatchNumbers*, typename Row::Params*,
              const RowScratch&) const {}
  static constexpr int kKernels = 0;
  double* part() const { return nullptr; }
  std::size_t bytes() const { return 0; }
};

}  // namespace rk
