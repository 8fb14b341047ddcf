// What reading a file may take of memory, itself included, whatever the file says: a program that
// takes in a file that nobody vouches for stays below max(2 x its size, 1 GB).
#pragma once

#include <algorithm>
#include <cstdint>

namespace rk {

// The program itself is within the rest of 1 GB.
constexpr std::uint64_t memory_for_file(std::uint64_t bytes) {
  return std::max(2 * bytes, std::uint64_t{900'000'000});
}

}  // namespace rk
