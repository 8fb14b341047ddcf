// What auc_ba and wilcoxon_bh need on a GPU between the totals and the rows: a table of the
// gradient, and every hardest pair against every other.
#pragma once

#include "kernels/rows/auc_table.h"
#include "kernels/rows/wilcoxon_pairs.h"
#include "losses/cuda/row_loss.h"

namespace rk {

template <> class DeviceTotals<AucAllRow<float>> {
 public:
  using Row = AucAllRow<float>;

  template <class Formula> void plan(const LossShape& shape, Formula& formula) {
    totals_.plan(shape, formula);
    bell_ = DeviceBuffer::copy_of(formula.table.bell());
    const std::size_t count = formula.table.coefficients().size();
    coefficients_ = DeviceBuffer::of<float>(static_cast<std::int64_t>(count));
    table_ = formula.table.table();
    table_.bell = bell_.as<double>();
    table_.coefficients = coefficients_.as<float>();
    formula.params.gradient.positive = table_.coefficients;
    formula.params.gradient.negative = table_.coefficients + count / 2;
  }

  void launch(const CudaContext& cuda, const RowBatch& rows, const BatchNumbers* numbers,
              Row::Params* params, const RowScratch& scratch) const {
    totals_.launch(cuda, rows, numbers, params, scratch);
    rk::launch(FillAucTable{table_, totals_.slopes()}, cuda.stream());
  }

  static constexpr int kKernels = 4;
  double* part() const { return totals_.part(); }
  std::size_t bytes() const { return totals_.bytes() + bell_.bytes() + coefficients_.bytes(); }

 private:
  TotalsToSlopes<Row> totals_;
  DeviceBuffer bell_;
  DeviceBuffer coefficients_;
  AucTable<float> table_;
};

template <> class DeviceTotals<WilcoxonRow<float>> {
 public:
  using Row = WilcoxonRow<float>;

  template <class Formula> void plan(const LossShape& shape, Formula& formula) {
    totals_.plan(shape, formula);
    r_ = formula.params.r;
    for (DeviceBuffer* buffer : {&positive_, &negative_, &values_}) {
      *buffer = DeviceBuffer::of<float>(shape.rows);
    }
    query_ = DeviceBuffer::of<std::int32_t>(shape.rows);
    count_ = DeviceBuffer::of<std::int32_t>(1);
  }

  void launch(const CudaContext& cuda, const RowBatch& rows, const BatchNumbers*,
              const Row::Params* params, const RowScratch& scratch) const {
    totals_.measure(cuda, rows, params, scratch);
    const HardestPairs pairs{positive_.as<float>(), negative_.as<float>(),
                             query_.as<std::int32_t>(), count_.as<std::int32_t>()};
    auto* values = values_.as<float>();
    rk::launch(GatherHardestPairs{rows.rows, rows.counted, totals_.stats(), pairs}, cuda.stream());
    rk::launch(MeetHardestPairs{rows.rows, r_, pairs, values, totals_.slopes()}, cuda.stream());
    rk::launch(SumHardestPairs{pairs, values, part()}, cuda.stream());
  }

  static constexpr int kKernels = 4;
  double* part() const { return totals_.part(); }
  std::size_t bytes() const {
    return totals_.bytes() + positive_.bytes() + negative_.bytes() + values_.bytes() +
           query_.bytes() + count_.bytes();
  }

 private:
  TotalsToSlopes<Row> totals_;
  float r_ = 0;
  DeviceBuffer positive_, negative_, values_, query_, count_;
};

}  // namespace rk
