// Similarities are inner products of the rows as given: unless rows have unit length, they are also
// ranked by length, which is seldom intended.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rk {

struct RowLengths {
  double least, most;
  // The threshold is far above the rounding of rows that were divided by their length.
  bool one() const { return least > 0.99 && !beyond_one(); }
  bool beyond_one() const { return most >= 1.01; }
};

// Of rows of `dim` numbers, at least one.
RowLengths row_lengths(std::span<const float> rows, std::int64_t dim);

// Prints a note, with `consequence`, unless all rows of `dim` numbers have length 1; returns it,
// empty without one.
std::string note_lengths(std::span<const float> rows, std::int64_t dim, const std::string& file,
                         const std::string& consequence);

}  // namespace rk
