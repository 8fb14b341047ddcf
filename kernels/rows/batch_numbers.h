// Losses whose rows are coupled by sums over all rows of a batch, and what they need to know of it.
// Such a row kernel has, beside row(),
//   static void measure(team, params, in, stats, memory)
//                                                writes a row's stats
//   static int stats(params)                     how many numbers measure() writes for a row
//   static int slopes(params, rows)              how many numbers finish() writes to `slopes`
//   static void place(params, slopes)            sets where row() finds these; absent if it reads
//                                                none
//   static void finish(team, batch, totals, params, slopes, loss)
// finish() is collective: from the totals of the stats over all rows it writes what row() needs, to
// slopes and to params, and the part of the loss that the rows do not write. It is called only for
// batches with a valid query.
#pragma once

namespace rk {

// Whether rows are coupled.
template <class Row>
concept MeasuredRow = requires(const typename Row::Params& params) {
  Row::stats(params);
};

struct BatchNumbers {
  double valid = 0;           // queries that count
  double positive_pairs = 0;  // ordered pairs
  double negative_pairs = 0;
  double value_weight = 0;  // loss = finish()'s part + value_weight * the sum of the rows' losses
};

}  // namespace rk
