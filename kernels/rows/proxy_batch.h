// What rows of the losses with class proxies work on; scores are e . w/|w|. A row of this kind has
//   Params                                the loss's parameters
//   kRowIsClass                           whether a row is a class and its columns items, or a row
//                                         an item and its columns classes
//   scratch(columns)                      bytes
//   row(team, params, batch, row, memory) overwrites scores with the weight times dloss/ds, writes
//                                         the loss; the largest exponents are subtracted
#pragma once

#include <cstdint>

namespace rk {

// What all rows of a batch share.
template <class S> struct ProxyBatch {
  S* scores = nullptr;      // [rows, stride], overwritten by dLoss/ds
  std::int64_t stride = 0;  // pad(columns) or more
  int rows = 0;
  int columns = 0;
  const std::int64_t* labels = nullptr;  // [items], rows of the proxies
  // [classes]: 1 / (number of classes in the batch) for each of these, 0 for the others.
  const S* shares = nullptr;
  S weight = 1;         // dLoss/d(loss of a row)
  S* losses = nullptr;  // [rows]
};

}  // namespace rk
