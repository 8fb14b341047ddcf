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

// Throws InputError naming the file if float32 cannot hold the scores, as measure() would.
void check_scores(const Context& context, const EvaluatedRows& rows);

// Prints the notes about unusual rows, and one of each k that covers all candidates of a query,
// since R@k is then meaningless; shows progress, stops if a signal asks to. InputErrors name
// the file.
Measured measure(const Context& context, const EvaluatedRows& rows, const MeasureOptions& options,
                 const CommonOptions& common);

}  // namespace rk
