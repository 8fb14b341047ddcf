// Rows on the CPU that depend on their hardest pair alone (Row::pair_gradient,
// kernels/rows/hardest_pair.h): each pair is searched once, the matrix of similarities is not
// overwritten, and the backward pass adds up two numbers a row (losses/products/sparse_gradient.h).
#pragma once

#include "engine/base/integers.h"
#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/hardest_pair.h"
#include "losses/products/sparse_gradient.h"
#include "losses/rows/cpu_rows.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rk {

// Whether a row's loss depends on its hardest pair alone.
template <class Row, class S>
inline constexpr bool kPairRow = requires(const SerialTeam& team,
                                          const typename Row::Params& params,
                                          const HardestPair<S>& pair, const GalleryRow<S>& in,
                                          S* loss) {
  Row::pair_gradient(team, params, pair, in, loss);
};

template <class S, class Row> class PairRows final : public CpuRows<S, Row> {
 public:
  using typename Rows<S, Row>::Batch;
  using typename Rows<S, Row>::Params;

  PairRows(const Context& context, const Params& params, const LossShape& shape)
      : CpuRows<S, Row>(context, params, shape), pairs_(static_cast<std::size_t>(shape.rows)) {
    gradient_.allocate(shape, 2);
  }

  void measure(const Context& context, const Batch& batch, S* stats, int width) override {
    if constexpr (MeasuredRow<Row>) {
      find(context, batch);
      this->for_each(context, batch,
                     [&](const SerialTeam& team, const GalleryRow<S>& in, std::byte*) {
                       S* own = stats + static_cast<std::ptrdiff_t>(in.self) * width;
                       if (batch.counted[in.self] == 0) {
                         std::fill_n(own, width, S(0));
                       } else {
                         Row::measure_pair(team, *batch.params, pair(in.self), own);
                       }
                     });
    }
  }

  void run(const Context& context, const Batch& batch, const LossInput<S>& input,
           SimilarityMatrix<S>& /*similarity*/, S* grad) override {
    if constexpr (!MeasuredRow<Row>) find(context, batch);
    this->for_each(context, batch,
                   [&](const SerialTeam& team, const GalleryRow<S>& in, std::byte*) {
                     write(team, batch, in);
                   });
    gradient_.backward(context, input, grad);
  }

  std::int64_t bytes() const override {
    return CpuRows<S, Row>::bytes() + gradient_.bytes() +
           static_cast<std::int64_t>(pairs_.size() * sizeof(HardestPair<S>));
  }

 private:
  HardestPair<S>& pair(int row) { return pairs_[at(row)]; }

  void find(const Context& context, const Batch& batch) {
    this->for_each(context, batch,
                   [&](const SerialTeam& team, const GalleryRow<S>& in, std::byte* scratch) {
                     if (batch.counted[in.self] == 0) return;
                     const typename Row::Pieces at(Scratch(scratch), in.columns, in.member_count);
                     pair(in.self) = hardest_pair(team, in, at.index);
                   });
  }

  void write(const SerialTeam& team, const Batch& batch, const GalleryRow<S>& in) {
    auto* nonzeros = gradient_.row(in.self);
    S* loss = batch.losses + in.self;
    if (batch.counted[in.self] == 0) {
      std::fill_n(nonzeros, 2, typename SparseGradient<S>::NonZero());
      *loss = 0;
      return;
    }
    const PairGradient<S> of = Row::pair_gradient(team, *batch.params, pair(in.self), in, loss);
    nonzeros[0] = {pair(in.self).positive_column, of.to_positive};
    nonzeros[1] = {pair(in.self).negative_column, of.to_negative};
  }

  std::vector<HardestPair<S>> pairs_;  // [rows], set for rows that count
  SparseGradient<S> gradient_;
};

}  // namespace rk
