#include "tools/eval/measure.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "retrieval/passes/largest_score.h"
#include "tools/cli/progress.h"
#include "tools/common/row_lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

// Notes what makes the metrics of these rows mean less than they seem to, and returns the notes.
std::vector<std::string> note_what_is_odd(const DescribedRows& queries,
                                          const DescribedRows* gallery) {
  std::vector<std::string> notes;
  for (const DescribedRows* rows : {&queries, gallery}) {
    // Normalised rows of another length are zero, which reading has already reported.
    if (rows == nullptr || rows->normalized) continue;
    std::string text = note_lengths(
        rows->set.values(), rows->set.dim, rows->name,
        "cosine similarity wants 1 (--normalize), and JSD counts scores within [-1, 1]");
    if (!text.empty()) notes.push_back(std::move(text));
  }
  if (gallery == nullptr && count_classes(queries.set) == queries.count()) {
    notes.push_back(
        fmt::format("{}: no class has two rows, so that there is nothing to find; give labels that "
                    "say which rows belong together",
                    queries.name));
    note(notes.back());
  }
  return notes;
}

// Whether all rows, of both sides, have one label.
bool one_class(const EmbeddingSet& queries, const EmbeddingSet* gallery) {
  const std::int64_t label = queries.labels.front();
  const auto is_it = [&](std::int64_t other) { return other == label; };
  return std::ranges::all_of(queries.labels, is_it) &&
         (gallery == nullptr || std::ranges::all_of(gallery->labels, is_it));
}

}  // namespace

void MeasureOptions::add_to(Flags& flags) {
  flags.add("--recall-at", recall_at, "the k of R@k").check(above_zero()).delimiter(',');
  flags.add_switch("--per-query", per_query, "add every query's values to the JSON");
}

void MeasureOptions::sort_recalls() {
  std::sort(recall_at.begin(), recall_at.end());
  recall_at.erase(std::unique(recall_at.begin(), recall_at.end()), recall_at.end());
}

void note_recalls_of_all(const MeasureOptions& options, const DescribedRows& queries,
                         const DescribedRows* gallery) {
  const std::int64_t candidates = gallery != nullptr ? gallery->count() : queries.count() - 1;
  if (candidates == 0) return;  // then nothing can be found
  std::vector<std::string> names;
  for (const std::int64_t k : options.recall_at) {
    if (k >= candidates) names.push_back(fmt::format("R@{}", k));
  }
  if (names.empty()) return;
  note(fmt::format("{}: a query has {}, so that whatever there is to find is found",
                   fmt::join(names, ", "), counted(candidates, "candidate")));
}

void check_scores(const Context& context, const DescribedRows& queries,
                  const DescribedRows* gallery) {
  std::optional<EmbeddingView> candidates;
  if (gallery != nullptr) candidates = gallery->view();
  naming_rows(queries, gallery, [&] {
    return largest_score(context, queries.view(), candidates ? &*candidates : nullptr);
  });
}

Measured measure(const Context& context, const DescribedRows& queries, const DescribedRows* gallery,
                 const MeasureOptions& options, const CommonOptions& common) {
  std::vector<std::string> notes = note_what_is_odd(queries, gallery);
  EvaluateOptions evaluation;
  evaluation.recall_at = options.recall_at;
  evaluation.per_query = options.per_query;
  evaluation.interrupted = interrupted;
  Progress progress("ranking", queries.count(), "queries", common.quiet);
  evaluation.progress = [&](double done) {
    progress.update(static_cast<std::int64_t>(done * static_cast<double>(queries.count())));
  };

  const auto start = std::chrono::steady_clock::now();
  std::optional<EmbeddingView> candidates;
  if (gallery != nullptr) candidates = gallery->view();
  const std::optional<Metrics> metrics = naming_rows(queries, gallery, [&] {
    return evaluate(context, queries.view(), candidates ? &*candidates : nullptr, evaluation);
  });
  progress.finish();
  if (!metrics) stop_if_interrupted();
  if (metrics->num_queries_valid > 0 &&
      one_class(queries.set, gallery != nullptr ? &gallery->set : nullptr)) {
    notes.push_back(
        fmt::format("{}: all of it is one class, so that whatever is found is right and R@1 is 1",
                    queries.name));
    note(notes.back());
  }
  return {*metrics, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          std::move(notes)};
}

}  // namespace rk
