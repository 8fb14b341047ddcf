// eval's metrics of rows, with the flags that select them.
#pragma once

#include "engine/device/context.h"
#include "retrieval/evaluate.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/described_rows.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct MeasureOptions {
  std::vector<std::int64_t> recall_at = EvaluateOptions{}.recall_at;
  bool per_query = false;

  void add_to(Flags& flags);
  // Sorts the k ascending and removes duplicates.
  void sort_recalls();
};

struct Measured {
  Metrics metrics;
  double seconds;
  std::vector<std::string> notes;  // what the metrics of these rows must be read with
};

// Notes what makes the metrics of these rows mean less than they seem to, and returns the notes:
// odd lengths, no class of two rows, and each k that covers all `candidates` of a query, since R@k
// is then meaningless.
std::vector<std::string> note_what_is_odd(const MeasureOptions& options, const EvaluatedRows& rows,
                                          std::int64_t candidates);

// Throws InputError naming the file if float32 cannot hold the scores, as measure() would.
void check_scores(const Context& context, const EvaluatedRows& rows);

// Notes what is odd, also rows of a single class; shows progress, stops if a signal asks to.
// InputErrors name the file.
Measured measure(const Context& context, const EvaluatedRows& rows, const MeasureOptions& options,
                 const CommonOptions& common);

}  // namespace rk
