#include "tools/eval/measure.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "tools/cli/gpu.h"
#include "tools/cli/progress.h"
#include "tools/common/row_lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rk {
namespace {

void note_what_is_odd(const Rows& queries, const Rows* gallery) {
  const auto note_of = [](const Rows& rows) {
    // Then only zero rows have another length, and reading has already reported them.
    if (rows.facts.value("normalize", false)) return;
    note_lengths(rows.set.values(), rows.set.dim, rows.name,
                 "cosine similarity wants 1 (--normalize), and JSD counts scores within [-1, 1]");
  };
  note_of(queries);
  if (count_classes(queries.set) == 1 && (gallery == nullptr || count_classes(gallery->set) == 1)) {
    note(fmt::format("{}: all of it is one class, so that whatever is found is right and R@1 is 1",
                     queries.name));
  }
  if (gallery != nullptr) note_of(*gallery);
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

void note_recalls_of_all(const MeasureOptions& options, const Rows& queries, const Rows* gallery) {
  const std::int64_t candidates = gallery != nullptr ? gallery->count() : queries.count() - 1;
  std::vector<std::string> names;
  for (const std::int64_t k : options.recall_at) {
    if (k >= candidates) names.push_back(fmt::format("R@{}", k));
  }
  if (names.empty()) return;
  note(fmt::format("{}: a query has {}, so that whatever there is to find is found",
                   fmt::join(names, ", "), counted(candidates, "candidate")));
}

Measured measure(const Context& context, const Rows& queries, const Rows* gallery,
                 const MeasureOptions& options, const CommonOptions& common) {
  note_what_is_odd(queries, gallery);
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
  return {*metrics,
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

}  // namespace rk
