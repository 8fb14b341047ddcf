#include "losses/auc.h"

#include "kernels/auc_row.h"
#include "kernels/wilcoxon_row.h"
#include "losses/auc_gradient.h"
#include "losses/row_loss.h"

#include <cmath>

namespace rk {
namespace {

// What both kinds share: from the sums of the sigmoids to the loss and its slopes by them.
template <class S, class RowKernel, bool kHardest> struct Auc : MeanOverQueriesWithNegative<S> {
  using Row = RowKernel;
  using Base = MeanOverQueriesWithNegative<S>;
  typename Row::Params params;
  double step = 0;
  std::vector<S> slopes;  // [2 count]
  AucGradientTable<S> table;

  std::int64_t scratch(int columns, int members) const { return Row::scratch(columns, members); }
  bool counts(const BatchIndex& index, int row) const {
    return !kHardest || Base::counts(index, row);
  }
  int stats() const { return 2 * params.count; }
  void plan(const LossShape&) {
    slopes.resize(static_cast<std::size_t>(stats()));
    if constexpr (kHardest) {
      params.slope = slopes.data();
    } else {
      table.plan(static_cast<double>(params.r), step, params.count);
      params.gradient = table.gradient();
    }
  }

  double finish(const Context&, const BatchIndex& index, const double* totals, const S*) {
    const int count = params.count;
    const auto valid = static_cast<double>(index.with_both());
    const double per_positive =
        1 / (kHardest ? valid : static_cast<double>(index.positive_pairs()));
    const double per_negative =
        1 / (kHardest ? valid : static_cast<double>(index.negative_pairs()));
    const auto t = [&](int m) { return totals[m] * per_positive; };
    const auto f = [&](int m) { return totals[count + m] * per_negative; };
    double area = 0;
    for (int m = 0; m + 1 < count; ++m) area += (t(m) + t(m + 1)) / 2 * (f(m) - f(m + 1));
    for (int m = 0; m < count; ++m) {
      double by_t = 0;
      double by_f = 0;
      if (m + 1 < count) {
        by_t += (f(m) - f(m + 1)) / 2;
        by_f += (t(m) + t(m + 1)) / 2;
      }
      if (m > 0) {
        by_t += (f(m - 1) - f(m)) / 2;
        by_f -= (t(m - 1) + t(m)) / 2;
      }
      slopes[static_cast<std::size_t>(m)] = static_cast<S>(-by_t * per_positive);
      slopes[static_cast<std::size_t>(count) + static_cast<std::size_t>(m)] =
          static_cast<S>(-by_f * per_negative);
    }
    if constexpr (!kHardest) table.fill(slopes.data());
    return 1 - area;
  }
};

template <class S> struct Wilcoxon : MeanOverQueriesWithNegative<S> {
  using Row = WilcoxonRow<S>;
  typename Row::Params params;
  std::vector<S> positive;  // f+ and f- of the queries that count
  std::vector<S> negative;
  std::vector<int> query;
  std::vector<S> values;
  std::vector<S> slopes;  // [rows, 2]

  std::int64_t scratch(int columns, int members) const { return Row::scratch(columns, members); }
  int stats() const { return 2; }
  void plan(const LossShape& shape) {
    const auto rows = static_cast<std::size_t>(shape.rows);
    positive.resize(rows);
    negative.resize(rows);
    query.resize(rows);
    values.resize(rows);
    slopes.resize(2 * rows);
    params.slopes = slopes.data();
  }

  double finish(const Context& context, const BatchIndex& index, const double*, const S* stats) {
    int count = 0;
    for (int i = 0; i < index.rows(); ++i) {
      if (!this->counts(index, i)) continue;
      const auto at = static_cast<std::size_t>(count++);
      query[at] = i;
      positive[at] = stats[std::ptrdiff_t{2} * i];
      negative[at] = stats[std::ptrdiff_t{2} * i + 1];
    }
    const double share = 1 / (static_cast<double>(count) * count);
    run_rows(context.threads(), count, nullptr, 0,
             [&](const SerialTeam& team, std::int64_t k, std::byte*) {
               const auto at = static_cast<std::size_t>(k);
               S* slope = slopes.data() + 2 * query[at];
               WilcoxonPairs<S>::row(team, params.r, positive.data(), negative.data(), count,
                                     static_cast<int>(k), &values[at], slope);
               slope[0] *= static_cast<S>(-share);
               slope[1] *= static_cast<S>(-share);
             });
    double total = 0;
    for (int k = 0; k < count; ++k) total += values[static_cast<std::size_t>(k)];
    return 1 - total * share;
  }
};

template <class S, class Formula> std::unique_ptr<Loss<S>> make_auc(const LossValues& values) {
  const double ds = values.number("ds");
  Formula formula;
  formula.step = ds;
  formula.params.step = static_cast<S>(ds);
  formula.params.count = static_cast<int>(std::floor(2 / ds + 1e-9)) + 1;
  formula.params.r = static_cast<S>(auc_steepness(ds));
  return std::make_unique<RowLoss<S, Formula>>(formula);
}

template <class S> std::unique_ptr<Loss<S>> make_wilcoxon(const LossValues& values) {
  Wilcoxon<S> formula;
  formula.params.r = static_cast<S>(values.number("r"));
  return std::make_unique<RowLoss<S, Wilcoxon<S>>>(formula);
}

constexpr const char* kPaper =
    "Gajic, Amato, Baldrich, van de Weijer, Gatta: Area Under the ROC Curve Maximization for "
    "Metric "
    "Learning, CVPR workshops 2022";

LossParameter step_parameter() {
  return number_parameter("ds", "0.05", 0.005, 1,
                          "step of the thresholds; the sigmoids' steepness follows from it");
}

}  // namespace

LossEntry auc_bh_entry() {
  return {.name = "auc_bh",
          .kind = LossKind::kEmbeddings,
          .summary = "area under the ROC curve of each query's hardest pair",
          .paper = std::string(kPaper) + "; eq. 9",
          .parameters = {step_parameter()},
          .make_float = make_auc<float, Auc<float, AucHardRow<float>, true>>,
          .make_double = make_auc<double, Auc<double, AucHardRow<double>, true>>};
}

LossEntry auc_ba_entry() {
  return {.name = "auc_ba",
          .kind = LossKind::kEmbeddings,
          .summary = "area under the ROC curve of all pairs",
          .paper = std::string(kPaper) + "; eq. 5-8",
          .parameters = {step_parameter()},
          .make_float = make_auc<float, Auc<float, AucAllRow<float>, false>>,
          .make_double = make_auc<double, Auc<double, AucAllRow<double>, false>>};
}

LossEntry wilcoxon_bh_entry() {
  return {.name = "wilcoxon_bh",
          .kind = LossKind::kEmbeddings,
          .summary = "every hardest positive above every hardest negative",
          .paper = std::string(kPaper) + "; eq. 11",
          .parameters = {number_parameter("r", "42.2", 1e-2, 1e4, "steepness of the sigmoid")},
          .make_float = make_wilcoxon<float>,
          .make_double = make_wilcoxon<double>,
          .sigmoids = [](double columns, double) { return 3 * columns; }};
}

}  // namespace rk
