// The most memory that reading an untrusted file may take, including the file itself, whatever it
// claims: the whole program stays below max(2 x file size, 1 GB).
#pragma once

#include <algorithm>
#include <cstdint>

namespace rk {

// The other 100 MB of 1 GB are for the program itself.
constexpr std::uint64_t memory_for_file(std::uint64_t bytes) {
  return std::max(2 * bytes, std::uint64_t{900'000'000});
}

}  // namespace rk
