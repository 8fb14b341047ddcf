#include "tests/race/cases.h"

#include "kernels/rows/auc_table.h"
#include "kernels/rows/row_batch.h"
#include "tests/kernel_cases/row_cases.h"
#include "tests/race/problem.h"
#include "tests/race/thread_team.h"

namespace rk::race {
namespace {

// Sums over members are added in another order than over lanes. double rounds to 1e-16; the rows
// add up to 27 terms and divide by sums that may be 1e-3 of their terms.
constexpr double kSumOrder = 1e-11;

// A kernel of the form row(team, params, gallery row, grad, loss, scratch); its gradient overwrites
// its scores.
template <class Row> class GalleryRun final : public Case::Run {
 public:
  GalleryRun(const typename Row::Params& params, std::int64_t scratch)
      : params_(params),
        grad_(problem_.scores()),
        losses_(Problem<double>::kRows),
        stats_(static_cast<std::size_t>(row_stats<Row>(params) * Problem<double>::kRows)),
        totals_(static_cast<std::size_t>(row_stats<Row>(params))),
        slopes_(totals_.size()),
        finished_(params),
        scratch_(scratch) {
    for (int query = 0; query < Problem<double>::kRows; ++query) {
      counted_.push_back(kCountsEveryQuery<Row> || problem_.has_positive(query) ? 1 : 0);
    }
  }

  void serial(const SerialTeam& team) override { rows(team); }
  void threads(const ThreadTeam& team) override { rows(team); }
  void block(const EmulatedTeam& team) override { rows(team); }
  std::vector<double> written() const override {
    std::vector<double> out = losses_;
    out.insert(out.end(), stats_.begin(), stats_.end());
    out.insert(out.end(), totals_.begin(), totals_.end());
    out.insert(out.end(), slopes_.begin(), slopes_.end());
    out.push_back(part_);
    out.insert(out.end(), grad_.begin(), grad_.end());  // padding too
    return out;
  }

 private:
  template <class Team> void rows(const Team& team) {
    const RowBatch<double> batch{.scores = grad_.data(),
                                 .stride = pad(Problem<double>::kColumns),
                                 .counted = counted_.data(),
                                 .losses = losses_.data()};
    for (int query = 0; query < Problem<double>::kRows; ++query) {
      GalleryRow<double> in = problem_.row(query);
      in.scores = batch.scores + query * batch.stride;
      if constexpr (requires { &Row::template measure<Team>; }) {
        const std::size_t width = stats_.size() / Problem<double>::kRows;
        measure_row<Row>(team, batch, params_, in, stats_.data(), static_cast<int>(width),
                         scratch_.data());
        launch(team);
      }
      run_row<Row>(team, batch, params_, in, scratch_.data());
      launch(team);
    }
    if constexpr (requires {
                    Row::finish(team, BatchNumbers(), totals_.data(), &finished_, slopes_.data(),
                                &part_);
                  }) {
      const std::size_t width = stats_.size() / Problem<double>::kRows;
      team.for_each(static_cast<int>(width), [&](int k) {
        const auto at = static_cast<std::size_t>(k);
        totals_[at] = 0;
        for (std::size_t row = 0; row < Problem<double>::kRows; ++row) {
          totals_[at] += stats_[row * width + at];
        }
      });
      launch(team);
      Row::finish(team, {.valid = 17, .positive_pairs = 60, .negative_pairs = 400}, totals_.data(),
                  &finished_, slopes_.data(), &part_);
    }
  }

  // On a GPU the next kernel or row is another launch; here it reuses the same scratch. What it
  // finds there must not matter, so only the barrier that a launch implies is kept.
  template <class Team> static void launch(const Team& team) {
    team.sum(1, [](int) { return 0.0; });
  }

  Problem<double> problem_;
  typename Row::Params params_;
  std::vector<double> grad_;
  std::vector<std::uint8_t> counted_;
  std::vector<double> losses_;
  std::vector<double> stats_;
  std::vector<double> totals_;
  std::vector<double> slopes_;
  typename Row::Params finished_;
  double part_ = 0;
  NanMemory scratch_;
};

constexpr int kColumns = Problem<double>::kColumns;

// A kernel of another form: rows(team, scores, out, scratch), with `scores` a matrix of kRows rows
// of pad(kColumns).
template <class Rows> class OtherRun final : public Case::Run {
 public:
  OtherRun(const Rows& rows, std::int64_t scratch)
      : rows_(rows),
        scores_(Problem<double>().scores()),
        out_(4 * Problem<double>::kRows),
        scratch_(scratch) {}
  void serial(const SerialTeam& team) override {
    rows_(team, scores_.data(), out_.data(), scratch_.data());
  }
  void threads(const ThreadTeam& team) override {
    rows_(team, scores_.data(), out_.data(), scratch_.data());
  }
  void block(const EmulatedTeam& team) override {
    rows_(team, scores_.data(), out_.data(), scratch_.data());
  }
  std::vector<double> written() const override {
    std::vector<double> out = out_;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (i % static_cast<std::size_t>(pad(kColumns)) < kColumns) out.push_back(scores_[i]);
    }
    return out;
  }

 private:
  Rows rows_;
  std::vector<double> scores_;
  std::vector<double> out_;
  NanMemory scratch_;
};

template <class Rows>
Case other_case(const std::string& name, std::int64_t scratch, const Rows& rows) {
  return {name, [=] { return std::make_unique<OtherRun<Rows>>(rows, scratch); }, kSumOrder};
}

// Arbitrary slopes, in place of those that the pass over all rows computes for a row's second
// kernel.
const double* made_up_slopes() {
  static const std::vector<double> values = [] {
    std::vector<double> out;
    for (int i = 0; i < 256; ++i) out.push_back(std::sin(i) / 16);
    return out;
  }();
  return values.data();
}

template <class Row> Case proxy_case(const std::string& name, const typename Row::Params& params) {
  const ProxyItems<double, Row> items(Problem<double>::kRows, kColumns);
  return other_case(name, Row::scratch(kColumns),
                    [=](const auto& team, double* scores, double* out, void* scratch) {
                      const ProxyBatch<double> batch{.scores = scores,
                                                     .stride = pad(kColumns),
                                                     .rows = Problem<double>::kRows,
                                                     .columns = kColumns,
                                                     .labels = items.labels.data(),
                                                     .shares = items.shares.data(),
                                                     .weight = 0.1,
                                                     .losses = out};
                      for (int i = 0; i < batch.rows; ++i) {
                        Row::row(team, params, batch, i, scratch);
                        team.sum(1, [](int) { return 0.0; });  // the next launch
                      }
                    });
}

std::vector<Case> row_cases() {
  const BetweenPasses<double> between{made_up_slopes(),
                                      {.positive = made_up_slopes(),
                                       .negative = made_up_slopes() + 104,
                                       .width = 0.25,
                                       .per_width = 4,
                                       .before = 6,
                                       .after = 6}};
  std::vector<Case> out;
  for_each_row_case([&]<template <class> class Row>(const char* name, const auto& make) {
    const auto params = make(between);
    if constexpr (kRowOfProxies<Row<double>>) {
      out.push_back(proxy_case<Row<double>>(name, params));
    } else {
      const std::int64_t scratch = scratch_of<Row<double>>(params, kColumns, kColumns);
      out.push_back({name,
                     [=] { return std::make_unique<GalleryRun<Row<double>>>(params, scratch); },
                     kSumOrder});
    }
  });
  return out;
}

// Calls every collective right after writes that it reads, and writes over what it read right after
// it: both need the barriers that the contract promises at a collective's ends.
template <class Team> void use_collectives(const Team& team, double* scores, double* out) {
  double* sums = scores + pad(kColumns);
  double* chosen = scores + 2 * pad(kColumns);
  const auto write = [&](double factor) {
    team.for_each(kColumns, [&](int k) { scores[k] = factor * (k * 5 % 7 + 0.01 * k); });
  };
  const auto read = [&](int k) { return scores[kColumns - 1 - k]; };  // mostly others' writes
  write(1);
  const double total = team.sum(kColumns, read);
  const double again = team.sum(kColumns, [](int k) { return 1.0 + k; });
  write(2);
  const auto best = team.arg_max(kColumns, read);
  const auto second =
      team.arg_max(kColumns, [&](int k) { return k == best.index ? 0.0 : read(k); });
  write(3);
  team.sums(4, kColumns, sums, [&](int r, int k) { return r * read(k); });
  const double of_sums = sums[0] + sums[1] + sums[2] + sums[3];
  write(4);
  const auto wanted = [&](int k) { return read(k) > 8; };
  const int count =
      team.compact(kColumns, wanted, [&](int k, int slot) { chosen[slot] = read(k); });
  const double of_chosen = count > 2 ? chosen[0] - chosen[count - 1] : -1.0;
  write(5);
  team.sync();
  team.for_each(1, [&](int) {
    out[0] = total + again;
    out[1] = best.value + second.value + best.index;
    out[2] = of_sums;
    out[3] = of_chosen + count + read(0);
  });
}

// Kernels that are not rows.
std::vector<Case> other_cases() {
  constexpr int kStride = pad(kColumns);
  return {
      other_case(kCollectives, 64,
                 [](const auto& team, double* scores, double* out, void*) {
                   use_collectives(team, scores, out);
                 }),
      other_case("wilcoxon_pairs", 64,
                 [](const auto& team, double* scores, double* out, void*) {
                   for (int i = 0; i < Problem<double>::kRows; ++i) {
                     WilcoxonPairs<double>::row(team, 7.0, scores, scores + kStride, kColumns, i,
                                                out + 4 * i, out + 4 * i + 1);
                   }
                 }),
      other_case("auc_table", 64,
                 [](const auto& team, double* scores, double*, void*) {
                   const AucTable<double> table{.bell = made_up_slopes(),
                                                .reach = 3,
                                                .count = 9,
                                                .steps = 15,
                                                .per_step = AucTable<double>::kCoefficients,
                                                .coefficients = scores};
                   for (int s = 0; s < 30; ++s) {
                     table.fill(team, made_up_slopes() + 100, s % 2, s / 2);
                   }
                 }),
  };
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> list = [] {
    std::vector<Case> out = row_cases();
    for (Case& test : other_cases()) out.push_back(std::move(test));
    return out;
  }();
  return list;
}

}  // namespace rk::race
