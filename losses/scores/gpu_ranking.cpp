#include "losses/scores/gpu_ranking.h"

#include "engine/base/error.h"
#include "kernels/cuda/sort.h"
#include "kernels/launch.h"

#include <algorithm>
#include <bit>

namespace rk {

void GpuRanking::allocate(const Context& context, std::int64_t count, bool segmented) {
  expect(count < std::int64_t{1} << 31, "[ranking] expected fewer than 2^31 scores, got {}", count);
  for (Memory& keys : keys_) {
    keys =
        segmented ? context.allocate<std::uint64_t>(count) : context.allocate<std::uint32_t>(count);
  }
  for (Memory& items : items_) items = context.allocate<std::uint32_t>(count);
  above_ = context.allocate<std::int32_t>(count + 1);
  place_ = context.allocate<std::int32_t>(count);
  values_ = context.allocate<float>(count);
  rests_ = context.allocate<float>(count);
  counts_ = context.allocate<std::int32_t>(ranking_blocks(count));
  partial_ = context.allocate<double>(ranking_blocks(count));
  const std::size_t single = sort_bytes<std::uint32_t>(count);
  workspace_ =
      context.allocate(segmented ? std::max(single, sort_bytes<std::uint64_t>(count)) : single);
}

void GpuRanking::rank(const Context& context, const RankingInput& input, double share,
                      double* loss) const {
  if (input.segments == 1) {
    rank_with<std::uint32_t>(context, input, share, loss);
  } else {
    rank_with<std::uint64_t>(context, input, share, loss);
  }
}

template <class Key>
void GpuRanking::rank_with(const Context& context, const RankingInput& input, double share,
                           double* loss) const {
  const CudaStream stream = context.stream();
  RankingArrays<Key> at;
  static_cast<RankingInput&>(at) = input;
  at.above = above_.as<std::int32_t>();
  at.place = place_.as<std::int32_t>();
  at.moved_value = values_.as<float>();
  at.moved_rest = rests_.as<float>();
  const auto pairs = [&](int k) {
    return DevicePairs<Key>{keys_[k].as<Key>(), items_[k].as<std::uint32_t>()};
  };
  const auto segment_bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(input.segments - 1)));
  const auto sort = [&](std::int64_t count, int bits, const DevicePairs<Key>& a,
                        const DevicePairs<Key>& b) {
    return sort_pairs(count, bits, a, b, workspace_.as<std::byte>(), workspace_.bytes(), stream);
  };
  const int bits = 32 + segment_bits;
  auto* counts = counts_.as<std::int32_t>();

  at.keys = pairs(0).keys;
  at.order = pairs(0).items;
  launch(context, KeyScores<Key>{at});
  const DevicePairs<Key> sorted = sort(at.all(), bits, pairs(0), pairs(1));
  at.keys = sorted.keys;
  at.order = sorted.items;
  launch(context, CountFlags<Key>{at, counts});
  launch(context, SumFlags{ranking_blocks(at.all()), counts});
  launch(context, WriteRanks<Key>{at, counts});

  const DevicePairs<Key> free = pairs(sorted.keys == pairs(0).keys ? 1 : 0);
  at.moved_keys = free.keys;
  at.moved = free.items;
  launch(context, MovePositives<Key>{at, partial_.as<double>()});
  const DevicePairs<Key> by_rest = sort(at.positives, 32, free, pairs(2));
  at.moved_keys = by_rest.keys;
  at.moved = by_rest.items;
  launch(context, KeyMoved<Key>{at});
  const DevicePairs<Key> moved =
      sort(at.positives, bits, by_rest, by_rest.keys == free.keys ? pairs(2) : free);
  at.moved_keys = moved.keys;
  at.moved = moved.items;
  launch(context, NegativeGradients<Key>{at});
  launch(context, PositiveGradients<Key>{at});
  launch(context, SumLostPrecision{partial_.as<double>(), ranking_blocks(at.positives), share,
                                   input.accumulate, loss});
}

std::int64_t GpuRanking::bytes() const {
  std::size_t total = above_.bytes() + place_.bytes() + values_.bytes() + rests_.bytes() +
                      counts_.bytes() + partial_.bytes() + workspace_.bytes();
  for (int k = 0; k < 3; ++k) total += keys_[k].bytes() + items_[k].bytes();
  return static_cast<std::int64_t>(total);
}

}  // namespace rk
