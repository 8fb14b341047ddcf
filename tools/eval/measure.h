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

// Prints a note for each k that covers all candidates of a query, since R@k is then meaningless.
// `gallery` as in measure().
void note_recalls_of_all(const MeasureOptions& options, const DescribedRows& queries,
                         const DescribedRows* gallery);

// Throws InputError naming the file if float32 cannot hold the scores, as measure() would.
void check_scores(const Context& context, const DescribedRows& queries,
                  const DescribedRows* gallery);

// Prints the notes about unusual rows, shows progress, stops if a signal asks to. `gallery`: null
// if the rows are searched among themselves. InputErrors name the file.
Measured measure(const Context& context, const DescribedRows& queries, const DescribedRows* gallery,
                 const MeasureOptions& options, const CommonOptions& common);

}  // namespace rk
