// What losses that add up over all rows of a batch must know of it. Such a row kernel has, beside
// measure() and row(),
//   static int stats(params)                     numbers a row contributes
//   static int slopes(params, rows)              numbers that follow from their totals
//   static void place(params, slopes)            where row() finds them; not where there are none
//   static void finish(team, batch, totals, params, slopes, loss)
// finish() is collective: from the totals over all rows it writes what row() needs, to slopes and
// to params, and that part of the loss which the rows do not write. It is called only for batches
// with a valid query.
#pragma once

namespace rk {

struct BatchNumbers {
  double valid = 0;           // queries that count
  double positive_pairs = 0;  // ordered pairs
  double negative_pairs = 0;
  double value_weight = 0;  // loss = finish()'s part + value_weight * the sum of the rows' losses
};

}  // namespace rk
