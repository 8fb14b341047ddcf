// A loss whose rows are independent: similarities, one row kernel, gradient. What a loss of this
// kind says of itself is a Formula:
//   using Row = SmoothApRow<S>;                 the kernel
//   Row::Params params;
//   std::int64_t valid(const BatchIndex&);      queries that count
//   bool counts(const BatchIndex&, int row);    whether this one does
//   double value_weight(const BatchIndex&);     loss = value_weight * sum of the rows' losses
//   S grad_weight(const BatchIndex&);           the same for the gradient, where a paper's code
//                                               differs
//   void begin(const BatchIndex&);              optional: params that depend on the batch
//   void plan(const LossShape&);                optional: allocates
// Where rows are coupled by sums over all of them (counts, histograms), Row::measure writes a row's
// stats, they are added up in the order of the rows, Row::finish (kernels/rows/batch_numbers.h)
// makes of the totals what the rows need, and only then does Row::row run. Then the formula may
// have
//   void fill(const S* slopes);                 more that follows from the slopes, for params
//   double finish(const Context&, const BatchIndex&, const S* stats, S* slopes);
//                                               in place of Row::finish, from each row's stats
// Rows that depend on their hardest pair alone (Row::pair_gradient, kernels/rows/hardest_pair.h)
// have two numbers of the gradient: each pair is looked for once, the matrix of similarities stays
// as it is, and the way back adds rows up (losses/frame/sparse_gradient.h).
// Rows that cost unlike say Row::work(columns, positives), the scores they compare or the sigmoids
// they take; threads then get rows of about the same work instead of the same number.
#pragma once

#include "kernels/cpu/rows_cpu.h"
#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/hardest_pair.h"
#include "losses/frame/batch_index.h"
#include "losses/frame/similarity.h"
#include "losses/frame/sparse_gradient.h"
#include "losses/frame/entry.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

namespace rk {

// The usual case: a mean over the queries with a positive.
template <class S> struct MeanOverQueries {
  std::int64_t valid(const BatchIndex& index) const { return index.with_positive(); }
  bool counts(const BatchIndex& index, int row) const { return index.positives(row) > 0; }
  double value_weight(const BatchIndex& index) const {
    return 1 / static_cast<double>(valid(index));
  }
  S grad_weight(const BatchIndex& index) const { return static_cast<S>(value_weight(index)); }
};

// The same for losses that also need a negative.
template <class S> struct MeanOverQueriesWithNegative {
  std::int64_t valid(const BatchIndex& index) const { return index.with_both(); }
  bool counts(const BatchIndex& index, int row) const {
    return index.positives(row) > 0 && index.negatives(row) > 0;
  }
  double value_weight(const BatchIndex& index) const {
    return 1 / static_cast<double>(valid(index));
  }
  S grad_weight(const BatchIndex& index) const { return static_cast<S>(value_weight(index)); }
};

// What losses that add up over all rows must know of a batch.
template <class Formula>
BatchNumbers batch_numbers(const Formula& formula, const BatchIndex& index) {
  const std::int64_t valid = formula.valid(index);
  return {.valid = static_cast<double>(valid),
          .positive_pairs = static_cast<double>(index.positive_pairs()),
          .negative_pairs = static_cast<double>(index.negative_pairs()),
          .value_weight = valid > 0 ? formula.value_weight(index) : 0};
}

// Whether a row's kernel is coupled to the others'.
template <class Row>
inline constexpr bool kMeasuredRow = requires(const typename Row::Params& params) {
  Row::stats(params);
};

// Whether a row's loss depends on its hardest pair alone.
template <class Row, class S>
inline constexpr bool kPairRow = requires(const SerialTeam& team,
                                          const typename Row::Params& params,
                                          const HardestPair<S>& pair, const GalleryRow<S>& in,
                                          S* loss) {
  Row::pair_gradient(team, params, pair, in, loss);
};

// For a registry entry: the scores of a row that have a gradient; 0: any of them.
template <class Formula>
inline constexpr int kScoresWithGradient = kPairRow<typename Formula::Row, float> ? 2 : 0;

// Whether rows say what they cost.
template <class Row> inline constexpr bool kUnlikeRow = requires {
  Row::work(std::int64_t{}, std::int64_t{});
};

template <class S, class Formula> class RowLoss final : public Loss<S> {
 public:
  explicit RowLoss(const Formula& formula) : formula_(formula) {}

  void plan(const Context& context, const LossShape& shape) override {
    index_.plan(shape);
    similarity_.plan(context, shape);
    losses_.resize(static_cast<std::size_t>(shape.rows));
    if constexpr (kPair) {
      pairs_.resize(static_cast<std::size_t>(shape.rows));
      gradient_.plan(shape, 2);
    }
    if constexpr (kUnlikeRow<Row>) work_.resize(static_cast<std::size_t>(shape.rows + 1));
    const auto columns = static_cast<int>(shape.rows + shape.memory);
    scratch_bytes_ = scratch_of<Row>(formula_.params, columns, columns);
    threads_ = context.threads();
    scratch_ = Buffer(static_cast<std::size_t>(scratch_bytes_ * threads_));
    if constexpr (requires { formula_.plan(shape); }) formula_.plan(shape);
    if constexpr (kMeasured) {
      const int width = Row::stats(formula_.params);
      stats_.resize(static_cast<std::size_t>(shape.rows * width));
      totals_.resize(static_cast<std::size_t>(width));
      slopes_.resize(
          static_cast<std::size_t>(Row::slopes(formula_.params, static_cast<int>(shape.rows))));
      if constexpr (requires { Row::place(formula_.params, slopes_.data()); }) {
        Row::place(formula_.params, slopes_.data());
      }
    }
  }

  void run(const Context& context, const LossInput<S>& input, LossOutput<S>& output) override {
    check_finite(context, input);
    index_.build(input);
    output.valid_queries = formula_.valid(index_);
    output.loss = 0;
    if (output.valid_queries == 0) {
      std::fill_n(output.grad, input.rows * input.dim, S(0));
      return;
    }
    if constexpr (requires { formula_.begin(index_); }) formula_.begin(index_);
    if constexpr (kUnlikeRow<Row>) add_up_work();
    similarity_.forward(context, input);
    if constexpr (kPair) find_pairs(context, input.rows);
    if constexpr (kMeasured) {
      measure(context, input.rows);
      output.loss = finish(context);
    }
    for_rows(context, input.rows,
             [&](const SerialTeam& team, const GalleryRow<S>& in, S* scores, std::byte* scratch) {
               S& loss = losses_[static_cast<std::size_t>(in.self)];
               if (formula_.counts(index_, in.self)) {
                 if constexpr (kPair) {
                   write_pair(team, in, &loss);
                 } else {
                   Row::row(team, formula_.params, in, scores, &loss, scratch);
                 }
               } else {
                 if constexpr (kPair) {
                   std::fill_n(gradient_.row(in.self), 2, typename SparseGradient<S>::Number());
                 } else {
                   std::fill_n(scores, index_.columns(), S(0));
                 }
                 loss = 0;
               }
             });
    double total = 0;
    for (std::int64_t i = 0; i < input.rows; ++i) total += losses_[static_cast<std::size_t>(i)];
    output.loss += total * formula_.value_weight(index_);
    if constexpr (kPair) {
      gradient_.backward(context, input, output.grad);
    } else {
      similarity_.backward(context, input, output.grad);
    }
  }

  std::int64_t bytes() const override {
    return index_.bytes() + similarity_.bytes() + gradient_.bytes() +
           static_cast<std::int64_t>(scratch_.bytes() + pairs_.size() * sizeof(HardestPair<S>) +
                                     work_.size() * sizeof(std::int64_t)) +
           static_cast<std::int64_t>((losses_.size() + stats_.size() + slopes_.size()) * sizeof(S) +
                                     totals_.size() * sizeof(double));
  }

 private:
  using Row = typename Formula::Row;
  static constexpr bool kMeasured = kMeasuredRow<Row>;
  static constexpr bool kPair = kPairRow<Row, S>;

  // f(team, row with its scores, the scores' place, scratch)
  template <class F> void for_rows(const Context& context, std::int64_t rows, F&& f) {
    const S weight = formula_.grad_weight(index_);
    const std::int64_t* work = kUnlikeRow<Row> ? work_.data() : nullptr;
    run_rows(std::min(threads_, context.threads()), rows, work, scratch_.as<std::byte>(),
             scratch_bytes_, [&](const SerialTeam& team, std::int64_t query, std::byte* scratch) {
               GalleryRow<S> in = index_.row<S>(static_cast<int>(query));
               S* scores = similarity_.row(query);
               in.scores = scores;
               in.weight = weight;
               f(team, in, scores, scratch);
             });
  }

  // A row that does not count is filled with zeros, which takes a pass like that to its scores.
  void add_up_work() {
    work_[0] = 0;
    for (int i = 0; i < index_.rows(); ++i) {
      const std::int64_t columns = index_.columns();
      const std::int64_t own =
          formula_.counts(index_, i) ? Row::work(columns, index_.positives(i)) : 0;
      const auto at = static_cast<std::size_t>(i);
      work_[at + 1] = work_[at] + columns + own;
    }
  }

  void find_pairs(const Context& context, std::int64_t rows) {
    for_rows(context, rows,
             [&](const SerialTeam& team, const GalleryRow<S>& in, const S*, std::byte* scratch) {
               if (!formula_.counts(index_, in.self)) return;
               const typename Row::Pieces at(Scratch(scratch), in.columns, in.member_count);
               pairs_[static_cast<std::size_t>(in.self)] = hardest_pair(team, in, at.index);
             });
  }

  void write_pair(const SerialTeam& team, const GalleryRow<S>& in, S* loss) {
    const HardestPair<S>& pair = pairs_[static_cast<std::size_t>(in.self)];
    const PairGradient<S> of = Row::pair_gradient(team, formula_.params, pair, in, loss);
    auto* numbers = gradient_.row(in.self);
    numbers[0] = {pair.positive_column, of.to_positive};
    numbers[1] = {pair.negative_column, of.to_negative};
  }

  // From the totals, that part of the loss which the rows do not write.
  double finish(const Context& context) {
    if constexpr (requires { formula_.finish(context, index_, stats_.data(), slopes_.data()); }) {
      return formula_.finish(context, index_, stats_.data(), slopes_.data());
    } else {
      double loss = 0;
      Row::finish(SerialTeam(), batch_numbers(formula_, index_), totals_.data(), &formula_.params,
                  slopes_.data(), &loss);
      if constexpr (requires { formula_.fill(slopes_.data()); }) formula_.fill(slopes_.data());
      return loss;
    }
  }

  void measure(const Context& context, std::int64_t rows) {
    const int width = Row::stats(formula_.params);
    for_rows(context, rows,
             [&](const SerialTeam& team, const GalleryRow<S>& in, const S*, std::byte* scratch) {
               S* stats = stats_.data() + static_cast<std::ptrdiff_t>(in.self) * width;
               if (formula_.counts(index_, in.self)) {
                 if constexpr (kPair) {
                   Row::measure_pair(team, formula_.params,
                                     pairs_[static_cast<std::size_t>(in.self)], stats);
                 } else {
                   Row::measure(team, formula_.params, in, stats, scratch);
                 }
               } else {
                 std::fill_n(stats, width, S(0));
               }
             });
    std::fill(totals_.begin(), totals_.end(), 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (int k = 0; k < width; ++k) {
        totals_[static_cast<std::size_t>(k)] += stats_[static_cast<std::size_t>(i * width + k)];
      }
    }
  }

  Formula formula_;
  BatchIndex index_;
  SimilarityMatrix<S> similarity_;
  std::vector<S> losses_;
  std::vector<S> stats_;        // [rows, stats()]
  std::vector<double> totals_;  // [stats()]
  std::vector<S> slopes_;
  std::vector<HardestPair<S>> pairs_;  // [rows], where kPair: of those that count
  SparseGradient<S> gradient_;         // where kPair
  std::vector<std::int64_t> work_;     // [rows + 1], where kUnlikeRow: of the rows before
  Buffer scratch_;
  std::int64_t scratch_bytes_ = 0;
  int threads_ = 1;
};

// For a registry entry: kFormula makes the formula from the parameters' values.
template <class S, auto kFormula> std::unique_ptr<Loss<S>> make_row_loss(const LossValues& values) {
  const auto formula = kFormula(values);
  return std::make_unique<RowLoss<S, std::remove_const_t<decltype(formula)>>>(formula);
}

}  // namespace rk
