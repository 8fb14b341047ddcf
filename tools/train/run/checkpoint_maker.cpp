#include "tools/train/run/checkpoint_maker.h"

#include "engine/base/error.h"
#include "engine/system/host_memory.h"
#include "tools/train/settings/train_options.h"
#include "training/equal_processes.h"
#include "weights/sealed_file.h"

#include <memory>
#include <new>
#include <utility>

namespace rk {

std::uint64_t CheckpointMaker::bytes() const {
  constexpr std::uint64_t kBeside = std::uint64_t{1} << 20;  // statistics, record, settings
  return trainer_.state_bytes() + kBeside;
}

void CheckpointMaker::require_readable_size() const {
  if (bytes() <= kMostSealedBytes) return;
  fail<UsageError>(
      "--out {}: a checkpoint of this run takes {:.1f} GiB, and none of more than {} is read "
      "again; use a smaller --dim, a smaller --memory or fewer classes",
      settings_.out, static_cast<double>(bytes()) / (1 << 30), kMostSealedBytes >> 30);
}

void CheckpointMaker::require_sound(const RunState& run) {
  trainer_.download();
  refuse_unsound(run);
}

void CheckpointMaker::require_good(const RunState& run) {
  trainer_.download();
  require_equal_parameters(processes_, trainer_.parameters(), run);
  refuse_unsound(run);
}

// The last update may have made parameters infinite even if loss and gradient were finite.
void CheckpointMaker::refuse_unsound(const RunState& run) const {
  if (trainer_.sound()) return;
  fail<DivergedError>(
      "training diverged: after step {} the network holds NaN, infinity or numbers beyond 1e12; "
      "lower --lr",
      run.step);
}

void CheckpointMaker::rehearse(const std::function<std::vector<std::byte>()>& make) {
  trainer_.download();
  try {
    // Reserves address space for the threads of libraries that start between now and the first
    // save. The loader's, which free_host_bytes() reserves too, run already.
    const auto heaps = std::make_unique_for_overwrite<std::byte[]>(4 * kThreadHeapBytes);
    *const_cast<volatile std::byte*>(heaps.get()) = std::byte{};
    const std::vector<std::byte> bytes = make();
  } catch (const std::bad_alloc&) {
    fail<DeviceError>(
        "out of memory: a checkpoint cannot be put together beside the run, which takes twice its "
        "size; end what else runs here, raise the limit (ulimit -v), or use a smaller --batch or "
        "--image-size");
  }
}

std::vector<std::byte> CheckpointMaker::make(RunState run) const {
  ModelDescription model = model_description(settings_);
  model.source_sha256 = source_sha256_;
  run.loss_scale = trainer_.loss_scale();
  CheckpointWriter writer(model, run);
  trainer_.save(writer);
  return writer.finish();
}

}  // namespace rk
