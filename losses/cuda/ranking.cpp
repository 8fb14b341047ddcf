#include "losses/cuda/ranking.h"

#include "engine/base/error.h"
#include "kernels/cuda/sort.h"
#include "kernels/launch.h"

#include <algorithm>
#include <bit>

namespace rk {

void DeviceRanking::plan(std::int64_t count, bool segmented) {
  expect(count < std::int64_t{1} << 31, "[ranking] expected fewer than 2^31 scores, got {}", count);
  for (DeviceBuffer& keys : keys_) {
    keys =
        segmented ? DeviceBuffer::of<std::uint64_t>(count) : DeviceBuffer::of<std::uint32_t>(count);
  }
  for (DeviceBuffer& items : items_) items = DeviceBuffer::of<std::uint32_t>(count);
  above_ = DeviceBuffer::of<std::int32_t>(count + 1);
  place_ = DeviceBuffer::of<std::int32_t>(count);
  counts_ = DeviceBuffer::of<std::int32_t>(ranking_blocks(count));
  partial_ = DeviceBuffer::of<double>(ranking_blocks(count));
  const std::size_t single = sort_bytes<std::uint32_t>(count);
  workspace_ =
      DeviceBuffer(segmented ? std::max(single, sort_bytes<std::uint64_t>(count)) : single);
}

void DeviceRanking::launch(const CudaContext& cuda, const Batch& batch) const {
  if (batch.segments == 1) {
    launch_with<std::uint32_t>(cuda, batch);
  } else {
    launch_with<std::uint64_t>(cuda, batch);
  }
}

template <class Key>
void DeviceRanking::launch_with(const CudaContext& cuda, const Batch& batch) const {
  RankingArrays<Key> at;
  at.items = batch.items;
  at.segments = batch.segments;
  at.positives = batch.positives;
  at.lambda = batch.lambda;
  at.margin = batch.margin;
  at.weight = batch.weight;
  at.scores = batch.scores;
  at.targets = batch.targets;
  at.own = batch.own;
  at.grad = batch.grad;
  at.accumulate = batch.accumulate;
  at.above = above_.as<std::int32_t>();
  at.place = place_.as<std::int32_t>();
  const auto pairs = [&](int k) {
    return DevicePairs<Key>{keys_[k].as<Key>(), items_[k].as<std::uint32_t>()};
  };
  const auto segment_bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(batch.segments - 1)));
  const auto sort = [&](std::int64_t count, const DevicePairs<Key>& a, const DevicePairs<Key>& b) {
    return sort_pairs(count, 32 + segment_bits, a, b, workspace_.as<std::byte>(),
                      workspace_.bytes(), cuda.stream());
  };
  const CudaStream stream = cuda.stream();
  auto* counts = counts_.as<std::int32_t>();

  at.keys = pairs(0).keys;
  at.order = pairs(0).items;
  rk::launch(KeyScores<Key>{at}, stream);
  const DevicePairs<Key> sorted = sort(at.all(), pairs(0), pairs(1));
  at.keys = sorted.keys;
  at.order = sorted.items;
  rk::launch(CountFlags<Key>{at, counts}, stream);
  rk::launch(SumFlags{ranking_blocks(at.all()), counts}, stream);
  rk::launch(WriteRanks<Key>{at, counts}, stream);

  const DevicePairs<Key> free = pairs(sorted.keys == pairs(0).keys ? 1 : 0);
  at.moved_keys = free.keys;
  at.moved = free.items;
  rk::launch(MovePositives<Key>{at, partial_.as<double>()}, stream);
  const DevicePairs<Key> moved = sort(at.positives, free, pairs(2));
  at.moved_keys = moved.keys;
  at.moved = moved.items;
  rk::launch(NegativeGradients<Key>{at}, stream);
  rk::launch(PositiveGradients<Key>{at}, stream);
  rk::launch(SumLostPrecision{partial_.as<double>(), ranking_blocks(at.positives), batch.share,
                              batch.accumulate, batch.loss},
             stream);
}

std::int64_t DeviceRanking::bytes() const {
  std::size_t total =
      above_.bytes() + place_.bytes() + counts_.bytes() + partial_.bytes() + workspace_.bytes();
  for (int k = 0; k < 3; ++k) total += keys_[k].bytes() + items_[k].bytes();
  return static_cast<std::int64_t>(total);
}

}  // namespace rk
