// Distributes the tiles of a symmetric matrix on and above its diagonal over cores: the same number
// to each, independent of the tiles' rows.
#pragma once

#include "engine/base/parallel.h"

#include <algorithm>
#include <cstdint>

namespace rk {

// Calls f(i, j, member) for 0 <= i <= j < tiles. Goes column by column within a band of rows of
// tiles, so that a column's data is fetched once for the whole band.
template <class F> void for_upper_tiles(int threads, std::int64_t tiles, F&& f) {
  constexpr std::int64_t kBand = 4;
  parallel_ranges(threads, tiles * (tiles + 1) / 2,
                  [&](std::int64_t begin, std::int64_t end, int member) {
                    std::int64_t at = 0;
                    for (std::int64_t band = 0; band < tiles; band += kBand) {
                      for (std::int64_t j = band; j < tiles; ++j) {
                        const std::int64_t last = std::min(j, band + kBand - 1);
                        for (std::int64_t i = band; i <= last; ++i, ++at) {
                          if (at >= begin && at < end) f(i, j, member);
                        }
                      }
                    }
                  });
}

}  // namespace rk
