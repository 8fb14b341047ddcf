// Takes the bytes of one run as the answers of an HDF5 parser to its reader. Each answer follows
// its length, two bytes in little-endian order.
#pragma once

#include "tests/support/said_answers.h"
#include "weights/hdf5/file.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rk {

// Removes the first answer from `left` and returns it; empty if nothing is left.
inline std::vector<std::byte> next_answer(std::span<const std::byte>& left) {
  if (left.size() < 2) return {};
  const std::size_t length =
      std::to_integer<std::size_t>(left[0]) + 256 * std::to_integer<std::size_t>(left[1]);
  const auto said = left.subspan(2, std::min(length, left.size() - 2));
  left = left.subspan(2 + said.size());
  return {said.begin(), said.end()};
}

inline Hdf5Reader reader_of(SaidAnswers::Say say) {
  return {"fuzz", std::make_unique<SaidAnswers>(std::move(say))};
}

}  // namespace rk
