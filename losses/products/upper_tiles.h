// The tiles of a symmetric matrix on and above its diagonal, over cores: as many to each, whatever
// row of tiles they lie in.
#pragma once

#include "engine/base/parallel.h"

#include <cstdint>

namespace rk {

// f(i, j, member) for 0 <= i <= j < tiles; a member's are in the order of i, then j.
template <class F> void for_upper_tiles(int threads, std::int64_t tiles, F&& f) {
  parallel_ranges(threads, tiles * (tiles + 1) / 2,
                  [&](std::int64_t begin, std::int64_t end, int member) {
                    std::int64_t i = 0;
                    std::int64_t first = 0;  // the number of tile (i, i)
                    while (first + tiles - i <= begin) first += tiles - i++;
                    std::int64_t j = i + begin - first;
                    for (std::int64_t at = begin; at < end; ++at) {
                      f(i, j, member);
                      if (++j == tiles) j = ++i;
                    }
                  });
}

}  // namespace rk
