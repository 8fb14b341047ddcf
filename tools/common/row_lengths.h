// Similarities are inner products of the rows as given: rows of other than unit length are ranked
// by length too, which is seldom meant.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rk {

// A note, with `consequence`, where rows of `dim` numbers are not all of length 1.
void note_lengths(std::span<const float> rows, std::int64_t dim, const std::string& file,
                  const std::string& consequence);

}  // namespace rk
