#include "tools/train/held_out.h"

#include "data/sources/open_dataset.h"
#include "data/spec.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace rk {

std::optional<Dataset> open_held_out(const TrainSettings& settings) {
  if (settings.test_data == "none") return std::nullopt;
  if (!settings.test_data.empty()) {
    const DataSpec spec = read_data_spec(settings.test_data);
    const std::vector<Split> splits = dataset_splits(spec);
    // A separate data set: its test split, or all of it.
    const bool has_test = std::find(splits.begin(), splits.end(), Split::kTest) != splits.end();
    return open_dataset(spec, has_test || splits.size() < 2 ? Split::kTest : splits.back());
  }
  const DataSpec spec = read_data_spec(settings.data);
  const std::vector<Split> splits = dataset_splits(spec);
  if (splits.size() < 2) {
    if (open_dataset(spec, Split::kTrain).classes().size() < 2) {
      fail<InputError>(
          "{}: holds a single class, which nothing can be told from; give more classes",
          spec.text());
    }
    fail<UsageError>(
        "--data {}: holds no classes out to evaluate on; add ,val_classes=0.2, or give "
        "--test-data SPEC (none: do not evaluate)",
        spec.text());
  }
  return open_dataset(spec, splits[1]);
}

Dataset training_sample(const Dataset& train, std::int64_t images, std::uint64_t seed) {
  CounterRandom random(seed, random_stream(RandomUseOnce::kTrainingSample), 0);
  std::vector<std::int64_t> order(train.classes().size());
  std::iota(order.begin(), order.end(), 0);
  std::int64_t count = 0;
  std::size_t taken = 0;
  while (taken < order.size() && (count < images || taken < 2)) {
    const auto left = static_cast<std::int64_t>(order.size() - taken);
    std::swap(order[taken], order[taken + static_cast<std::size_t>(random.below(left))]);
    const auto label = static_cast<std::size_t>(order[taken]);
    count += static_cast<std::int64_t>(train.members()[label].size());
    ++taken;
  }
  order.resize(taken);
  std::sort(order.begin(), order.end());
  return train.select(order);
}

}  // namespace rk
