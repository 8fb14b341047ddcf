// eval's metrics of rows, with the flags that choose among them.
#pragma once

#include "engine/device/context.h"
#include "retrieval/evaluate.h"
#include "tools/cli/cli.h"
#include "tools/eval/inputs/rows.h"

#include <cstdint>
#include <vector>

namespace rk {

struct MeasureOptions {
  std::vector<std::int64_t> recall_at = EvaluateOptions{}.recall_at;
  bool per_query = false;

  void add_to(Flags& flags);
  // Each k once, ascending, however they were given.
  void sort_recalls();
};

struct Measured {
  Metrics metrics;
  double seconds;
};

// Where all candidates of a query are among the first k, R@k says nothing, and a note says so.
// `gallery` as in measure().
void note_recalls_of_all(const MeasureOptions& options, const Rows& queries, const Rows* gallery);

// Says what is odd about the rows, shows progress, stops where a signal asks to. `gallery`: null
// where rows are searched for among themselves. InputError names the file.
Measured measure(const Context& context, const Rows& queries, const Rows* gallery,
                 const MeasureOptions& options, const CommonOptions& common);

}  // namespace rk
