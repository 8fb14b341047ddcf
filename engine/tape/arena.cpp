#include "engine/tape/arena.h"

#include "engine/base/integers.h"
#include "engine/device/buffer.h"

#include <algorithm>
#include <numeric>

namespace rk {
namespace {

std::size_t aligned(std::size_t bytes) { return round_up(bytes, Buffer::kAlignment); }

}  // namespace

ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes) {
  ArenaPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });

  std::vector<std::size_t> placed;  // by ascending offset
  for (std::size_t item : order) {
    const Lifetime& life = lifetimes[item];
    std::size_t offset = 0;
    for (std::size_t other : placed) {
      const Lifetime& o = lifetimes[other];
      if (o.last < life.first || o.first > life.last) continue;
      if (offset + aligned(life.bytes) <= plan.offsets[other])
        break;  // fits into the gap before the other buffer
      offset = std::max(offset, plan.offsets[other] + aligned(o.bytes));
    }
    plan.offsets[item] = offset;
    plan.bytes = std::max(plan.bytes, offset + aligned(life.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), item,
                                   [&](std::size_t a, std::size_t b) {
                                     return plan.offsets[a] < plan.offsets[b];
                                   }),
                  item);
  }
  return plan;
}

}  // namespace rk
