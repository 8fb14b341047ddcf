// Makes checkpoints of the state of training: how large they are, whether the state is fit to be
// saved, and their bytes.
#pragma once

#include "engine/group/process_group.h"
#include "tools/train/settings/train_settings.h"
#include "training/trainer.h"
#include "weights/run_state.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class CheckpointMaker {
 public:
  // The arguments must outlive the object.
  CheckpointMaker(ProcessGroup& processes, const TrainSettings& settings, Trainer& trainer)
      : processes_(processes), settings_(settings), trainer_(trainer) {}

  // Of the run's initial weights; empty: drawn.
  void set_source(std::string sha256) { source_sha256_ = std::move(sha256); }
  const std::string& source_sha256() const { return source_sha256_; }

  std::uint64_t bytes() const;  // of one checkpoint, at most
  // Throws UsageError if they are more than a checkpoint that is read may have.
  void require_readable_size() const;

  // The following bring the network to the host; no step may be in flight.

  // Throws DivergedError unless the network is finite.
  void require_sound(const RunState& run);
  // Throws UnequalProcesses, too, unless all processes hold the same. A collective call, for all of
  // them or none must go on to save.
  void require_good(const RunState& run);
  // Throws DeviceError if memory is too small for `make`, which makes a checkpoint.
  void rehearse(const std::function<std::vector<std::byte>()>& make);

  // As of the last of these calls.
  std::vector<std::byte> make(RunState run) const;

 private:
  void refuse_unsound(const RunState& run) const;

  ProcessGroup& processes_;
  const TrainSettings& settings_;
  Trainer& trainer_;
  std::string source_sha256_;
};

}  // namespace rk
