#include "tools/held_out.h"

#include "data/spec.h"
#include "engine/error.h"

#include <algorithm>
#include <vector>

namespace rk {

std::optional<Dataset> open_held_out(const TrainSettings& settings) {
  if (settings.test_data == "none") return std::nullopt;
  if (!settings.test_data.empty()) {
    const DataSpec spec = read_data_spec(settings.test_data);
    const std::vector<Split> splits = dataset_splits(spec);
    // A data set of its own: its test split, or all of it.
    const bool has_test = std::find(splits.begin(), splits.end(), Split::kTest) != splits.end();
    return open_dataset(spec, has_test || splits.size() < 2 ? Split::kTest : splits.back());
  }
  const DataSpec spec = read_data_spec(settings.data);
  const std::vector<Split> splits = dataset_splits(spec);
  if (splits.size() < 2) {
    fail<UsageError>(
        "--data {}: holds no classes out to evaluate on; add ,val_classes=0.2, or give "
        "--test-data SPEC (none: do not evaluate)",
        spec.text());
  }
  return open_dataset(spec, splits[1]);
}

}  // namespace rk
