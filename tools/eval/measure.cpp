#include "tools/eval/measure.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "retrieval/passes/largest_score.h"
#include "tools/cli/with_progress.h"
#include "tools/common/row_lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

// Returns which R@k cover all candidates; empty: none.
std::string recalls_of_all(const MeasureOptions& options, std::int64_t candidates) {
  if (candidates == 0) return "";  // then nothing can be found
  std::vector<std::string> names;
  for (const std::int64_t k : options.recall_at) {
    if (k >= candidates) names.push_back(fmt::format("R@{}", k));
  }
  if (names.empty()) return "";
  return fmt::format("{}: a query has at most {}, so that whatever there is to find is found",
                     fmt::join(names, ", "), counted(candidates, "candidate"));
}

// Why the labels leave nothing to find; empty: they do not.
std::string remark_on_classes(const EvaluatedRows& rows) {
  const DescribedRows& queries = rows.queries;
  if (!rows.gallery && count_classes(queries.set) == queries.count()) {
    return fmt::format(
        "{}: no class has two rows, so that there is nothing to find; give labels that say which "
        "rows belong together",
        queries.name);
  }
  if (rows.gallery && count_shared_classes(queries.set, rows.gallery->set) == 0) {
    const auto first = [](const EmbeddingSet& set) {
      return name_or_number(set.classes, set.labels.front());
    };
    return fmt::format(
        "{}: none of its classes (the first is {}) is in {} (there it is {}), so that there is "
        "nothing to find; label both alike",
        queries.labels_in, in_quotes(first(queries.set)), rows.gallery->labels_in,
        in_quotes(first(rows.gallery->set)));
  }
  return "";
}

}  // namespace

std::vector<std::string> note_what_is_odd(const MeasureOptions& options, const EvaluatedRows& rows,
                                          std::int64_t candidates) {
  std::vector<std::string> notes;
  const auto look_at_lengths = [&](const DescribedRows& side) {
    // Normalised rows of another length are zero, which reading has already reported.
    if (side.normalized) return;
    std::string text = note_lengths(
        side.set.values(), side.set.dim, side.name,
        "cosine similarity wants 1 (--normalize), and JSD counts scores outside of [-1, 1] at its "
        "ends");
    const bool told = std::ranges::count(notes, text) > 0;  // queries and gallery are one file
    if (!text.empty() && !told) notes.push_back(std::move(text));
  };
  const DescribedRows& queries = rows.queries;
  look_at_lengths(queries);
  if (rows.gallery) look_at_lengths(*rows.gallery);
  std::string text = remark_on_classes(rows);
  if (text.empty()) text = recalls_of_all(options, candidates);
  if (!text.empty()) note(notes.emplace_back(std::move(text)));
  return notes;
}

namespace {

// The JSD's bins cannot tell classes apart whose scores lie in one of them; empty: they do not.
std::string remark_on_bins(const PairMetrics& pairs) {
  if (!std::isfinite(pairs.jsd) || pairs.jsd >= 0.99) return "";
  const double half = (pairs.pos_mean - pairs.neg_mean) / 2;  // both sides weigh the same
  const double deviation =
      std::sqrt(std::max(0.0, (pairs.pos_var + pairs.neg_var) / 2 + half * half));
  if (!(deviation < PairMetrics::kJsdBinWidth)) return "";
  return fmt::format(
      "scores lie within {:.1g} (standard deviation) of {:.4g}: the JSD, over bins of {:g}, says "
      "little there, and ROC-AUC does",
      deviation, pairs.neg_mean + half, PairMetrics::kJsdBinWidth);
}

// Divided by few pairs, a histogram is ragged, and so differs from the other one by chance.
std::string remark_on_pairs(const Metrics& metrics) {
  constexpr std::int64_t kEnough = 5000;  // the JSD of equal distributions is 0.01 there
  const std::int64_t pairs = metrics.num_pairs_positive;
  if (!std::isfinite(metrics.pairs.jsd) || metrics.pairs.jsd >= 0.99 || pairs >= kEnough) return "";
  return fmt::format(
      "the JSD of only {} is too high, the more so the fewer they are; compare it with that of as "
      "many",
      counted(pairs, "positive pair"));
}

// Empty: some query has something to find, or its class alone leaves it nothing.
std::string remark_on_cameras(const Metrics& metrics, const EvaluatedRows& rows) {
  if (metrics.num_queries_valid > 0 || !metrics.camera_rule || !remark_on_classes(rows).empty()) {
    return "";
  }
  return fmt::format(
      "{}: all candidates of a query's class have its camera and are removed, so that there is "
      "nothing to find; give cameras that differ, or none",
      rows.queries.name);
}

// Whether all rows, of both sides, have one label.
bool one_class(const EvaluatedRows& rows) {
  const std::vector<std::int64_t>& labels = rows.queries.set.labels;
  const auto is_it = [&](std::int64_t other) { return other == labels.front(); };
  return std::ranges::all_of(labels, is_it) &&
         (!rows.gallery || std::ranges::all_of(rows.gallery->set.labels, is_it));
}

}  // namespace

void MeasureOptions::add_to(Flags& flags) {
  flags.add("--recall-at", recall_at, "the k of R@k").check(whole_number(1)).delimiter(',');
  flags.add_switch("--per-query", per_query, "add every query's values to the JSON");
}

void MeasureOptions::sort_recalls() {
  std::sort(recall_at.begin(), recall_at.end());
  recall_at.erase(std::unique(recall_at.begin(), recall_at.end()), recall_at.end());
}

void check_scores(const Context& context, const EvaluatedRows& rows) {
  with_views(rows, [&](const EmbeddingView& queries, const EmbeddingView* gallery) {
    return largest_score(context, queries, gallery);
  });
}

Measured measure(const Context& context, const EvaluatedRows& rows, const MeasureOptions& options,
                 const CommonOptions& common) {
  std::vector<std::string> notes = note_what_is_odd(options, rows, rows.candidates());
  EvaluateOptions evaluation;
  evaluation.recall_at = options.recall_at;
  evaluation.per_query = options.per_query;

  const auto start = std::chrono::steady_clock::now();
  const Metrics metrics =
      with_progress({"ranking", rows.queries.count(), "queries", common.quiet}, evaluation, [&] {
        return with_views(rows, [&](const EmbeddingView& queries, const EmbeddingView* gallery) {
          return evaluate(context, queries, gallery, evaluation);
        });
      });
  if (metrics.num_queries_valid > 0 && one_class(rows)) {
    notes.push_back(
        fmt::format("{}: all of it is one class, so that whatever is found is right and R@1 is 1",
                    rows.queries.name));
    note(notes.back());
  }
  for (std::string text : {remark_on_cameras(metrics, rows), remark_on_bins(metrics.pairs),
                           remark_on_pairs(metrics)}) {
    if (!text.empty()) note(notes.emplace_back(std::move(text)));
  }
  return {metrics, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          std::move(notes)};
}

}  // namespace rk
