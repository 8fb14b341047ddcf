// A report's tables must hold what plain counting finds.
#include "retrieval/report/tables.h"
#include "engine/base/integers.h"

#include "tests/support/page.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

namespace rk {
namespace {

using Cells = std::vector<std::vector<std::string>>;

// The tables of a section, without their heads.
std::vector<Cells> tables_of(const std::string& section) {
  const PageElement root = read_page("<!DOCTYPE html><div>" + section + "</div>");
  std::vector<Cells> tables;
  for (const PageElement* table : find_all(root, "table")) {
    Cells& rows = tables.emplace_back();
    for (const PageElement* row : find_all(*table, "tr")) {
      if (!find_all(*row, "td").empty()) {
        std::vector<std::string>& cells = rows.emplace_back();
        for (const PageElement& cell : row->children) cells.push_back(cell.text);
      }
    }
  }
  return tables;
}

std::string shown(double value) { return fmt::format("{:.4f}", value); }
std::string shown_change(double by) {
  const std::string text = fmt::format("{:+.4f}", by);
  return text == "-0.0000" ? "+0.0000" : text;
}
std::string shown(const Interval& of) { return fmt::format("{:.4f} to {:.4f}", of.low, of.high); }

class Tables : public testing::Test {
 protected:
  static constexpr std::int64_t kQueries = 300, kClasses = 30, kGallery = 90;

  Tables() {
    for (std::int64_t q = 0; q < kQueries; ++q) queries_.labels.push_back(below(kClasses));
    for (std::int64_t g = 0; g < kGallery; ++g) gallery_.labels.push_back(below(kClasses));
    for (std::int64_t c = 0; c < kClasses; ++c) {
      queries_.classes.push_back(fmt::format("asked {}", c));
      gallery_.classes.push_back(fmt::format("found {}", c));
    }
  }
  double share() { return std::uniform_real_distribution(0.0, 1.0)(random_); }
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  Interval interval() { return {share(), share()}; }

  ReportedRun run(const std::string& name) {
    ReportedRun out{.name = name,
                    .metrics = {},
                    .intervals = {{interval(), interval()}, interval(), interval(), interval()},
                    .neighbours = Neighbours(kQueries, 1),
                    .record = std::nullopt,
                    .facts = {}};
    Metrics& m = out.metrics;
    m.recall_at = {1, 10};
    m.recall = {share(), share()};
    for (double* value : {&m.r_precision, &m.map_at_r, &m.map, &m.pairs.roc_auc, &m.pairs.jsd,
                          &m.pairs.pos_mean, &m.pairs.neg_mean, &m.dists_intra, &m.dists_inter}) {
      *value = share();
    }
    PerQuery& each = m.per_query;
    for (std::int64_t q = 0; q < kQueries; ++q) {
      const bool found = q % 7 != 0;  // the others have nothing to find
      each.num_relevant.push_back(found ? 3 : 0);
      each.num_candidates.push_back(kGallery);
      each.first_hit_rank.push_back(found ? 1 + below(3) : 0);
      for (auto* values : {&each.ap, &each.ap_at_r, &each.r_precision}) {
        values->push_back(found ? share() : std::nan(""));
      }
      out.neighbours.room(q)[0] = {0.5F, static_cast<std::int32_t>(below(kGallery))};
      out.neighbours.count(q) = 1;
    }
    return out;
  }
  Report report(int runs) {
    Report out;
    out.queries = &queries_;
    out.gallery = &gallery_;
    for (int r = 0; r < runs; ++r) out.runs.push_back(run(r == 0 ? "runs/a" : "runs/b"));
    if (runs > 1) {
      out.difference = {{{0.1, 0.2}, {-0.1, 0.2}}, {-0.2, -0.1}, interval(), interval()};
    }
    return out;
  }

  struct ClassRow {
    std::int64_t label = 0, queries = 0;  // those that have something to find
    double recall = 0, map_at_r = 0, map = 0;
  };
  // Of the classes with a query that has something to find.
  std::vector<ClassRow> by_class(const ReportedRun& run) const {
    std::vector<ClassRow> rows;
    const PerQuery& each = run.metrics.per_query;
    for (std::int64_t c = 0; c < kClasses; ++c) {
      ClassRow row{.label = c};
      for (std::size_t q = 0; q < queries_.labels.size(); ++q) {
        if (queries_.labels[q] != c || each.num_relevant[q] == 0) continue;
        ++row.queries;
        row.recall += each.first_hit_rank[q] == 1 ? 1 : 0;
        row.map_at_r += each.ap_at_r[q];
        row.map += each.ap[q];
      }
      if (row.queries == 0) continue;
      for (double* sum : {&row.recall, &row.map_at_r, &row.map}) {
        *sum /= static_cast<double>(row.queries);
      }
      rows.push_back(row);
    }
    return rows;
  }
  // Classes, what their first results were taken for, how often, and of how many queries.
  Cells confusions(const ReportedRun& run) const {
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> times;
    std::map<std::int64_t, std::int64_t> valid;
    for (std::int64_t q = 0; q < kQueries; ++q) {
      if (run.metrics.per_query.num_relevant[at(q)] == 0) continue;
      const std::int64_t own = queries_.labels[at(q)];
      const std::int64_t first = gallery_.labels[at(run.neighbours.of(q)[0].row)];
      ++valid[own];
      if (own != first) ++times[{own, first}];
    }
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> sorted;
    for (const auto& [pair, count] : times) {
      sorted.emplace_back(-count, valid[pair.first], pair.first, pair.second);
    }
    std::ranges::sort(sorted);
    Cells cells;
    for (std::size_t i = 0; i < std::min<std::size_t>(20, sorted.size()); ++i) {
      const auto& [count, of, label, taken_for] = sorted[i];
      cells.push_back({queries_.classes[at(label)], gallery_.classes[at(taken_for)],
                       fmt::format("{}", -count), fmt::format("{}", of)});
    }
    return cells;
  }

  EmbeddingSet queries_, gallery_;
  std::mt19937 random_{static_cast<unsigned>(random_seed())};
};

TEST_F(Tables, ClassesOfOneRunAreTheHardest) {
  const Report made = report(1);
  std::vector<ClassRow> expected = by_class(made.runs[0]);
  std::ranges::sort(expected, {}, &ClassRow::map_at_r);
  expected.resize(std::min<std::size_t>(20, expected.size()));
  Cells cells;
  for (const ClassRow& row : expected) {
    cells.push_back({queries_.classes[at(row.label)], fmt::format("{}", row.queries),
                     shown(row.recall), shown(row.map_at_r), shown(row.map)});
  }
  EXPECT_EQ(tables_of(classes_section(made)),
            (std::vector<Cells>{cells, confusions(made.runs[0])}));
}

TEST_F(Tables, ClassesOfTwoRunsAreThoseThatDifferMost) {
  const Report made = report(2);
  const std::vector<ClassRow> before = by_class(made.runs[0]), after = by_class(made.runs[1]);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < before.size(); ++i) order.push_back(i);
  const auto change = [&](std::size_t i) { return after[i].map_at_r - before[i].map_at_r; };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::abs(change(a)) > std::abs(change(b));
  });
  Cells cells;
  for (std::size_t i = 0; i < std::min<std::size_t>(12, order.size()); ++i) {
    const ClassRow& row = before[order[i]];
    cells.push_back({queries_.classes[at(row.label)], fmt::format("{}", row.queries),
                     shown(row.map_at_r), shown(after[order[i]].map_at_r),
                     shown_change(change(order[i]))});
  }
  EXPECT_EQ(tables_of(classes_section(made)),
            (std::vector<Cells>{cells, confusions(made.runs[0]), confusions(made.runs[1])}));
}

TEST_F(Tables, MetricsAreThoseOfEachRun) {
  const Report made = report(2);
  const ReportedRun &a = made.runs[0], &b = made.runs[1];
  Cells cells;
  const auto ranked = [&](const std::string& name, double of_a, const Interval& in_a, double of_b,
                          const Interval& in_b, const Interval& difference,
                          const std::string& told) {
    // On a narrow page the last three columns stand below the name.
    const std::string by = shown_change(of_b - of_a);
    const std::string interval = fmt::format("{:+.4f} to {:+.4f}", difference.low, difference.high);
    cells.push_back({fmt::format("{}{}({}){}", name, by, interval, told), shown(of_a) + shown(in_a),
                     shown(of_b) + shown(in_b), by, interval, told});
  };
  const auto plain = [&](const std::string& name, double of_a, double of_b) {
    const std::string by = shown_change(of_b - of_a);
    cells.push_back({name + by, shown(of_a), shown(of_b), by, "", ""});
  };
  const RankIntervals &in_a = a.intervals, &in_b = b.intervals, &between = *made.difference;
  const Metrics &m = a.metrics, &n = b.metrics;
  ranked("R@1", m.recall[0], in_a.recall[0], n.recall[0], in_b.recall[0], between.recall[0],
         "runs/b is higher");
  ranked("R@10", m.recall[1], in_a.recall[1], n.recall[1], in_b.recall[1], between.recall[1],
         "not told apart");
  ranked("MAP@R", m.map_at_r, in_a.map_at_r, n.map_at_r, in_b.map_at_r, between.map_at_r,
         "runs/b is higher");
  ranked("mAP", m.map, in_a.map, n.map, in_b.map, between.map, "runs/b is higher");
  ranked("R-Precision", m.r_precision, in_a.r_precision, n.r_precision, in_b.r_precision,
         between.r_precision, "runs/a is higher");
  plain("ROC-AUC", m.pairs.roc_auc, n.pairs.roc_auc);
  plain("JSD", m.pairs.jsd, n.pairs.jsd);
  plain("mean of positives", m.pairs.pos_mean, n.pairs.pos_mean);
  plain("mean of negatives", m.pairs.neg_mean, n.pairs.neg_mean);
  plain("dists@intra", m.dists_intra, n.dists_intra);
  plain("dists@inter", m.dists_inter, n.dists_inter);
  EXPECT_EQ(tables_of(metrics_section(made)), std::vector<Cells>{cells});
}

}  // namespace
}  // namespace rk
