#include "tools/train/run/run_saver.h"

#include "engine/base/note.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace rk {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

void RunSaver::require_room(std::uint64_t checkpoint_bytes, std::int64_t saves) {
  const std::int64_t there = count_checkpoints();
  const std::int64_t more = std::min(4 - there, saves + (there < 2 ? 1 : 0));
  rk::require_room(folder_, checkpoint_bytes, more, files_);
}

std::int64_t RunSaver::count_checkpoints() const {
  return std::ranges::count_if(kRunCheckpoints, [&](const char* name) {
    std::error_code ignored;
    return fs::exists(fs::path(folder_) / name, ignored);
  });
}

void RunSaver::take_folder(bool old_table) {
  took_folder_ = true;
  if (!lock_) return;
  lock_->keep();
  std::vector<std::string> ours(kRunCheckpoints.begin(), kRunCheckpoints.end());
  ours.insert(ours.end(), kRunTexts.begin(), kRunTexts.end());
  remove_stale_temporaries(folder_, ours);
  std::error_code ignored;
  const fs::path table = fs::path(folder_) / kTableFile;
  if (old_table && fs::remove(table, ignored)) {
    note(
        fmt::format("{}: removed, since --log none would leave it out of date; metrics.jsonl has "
                    "all that was in it",
                    table.string()));
  }
}

void RunSaver::save_last(std::span<const std::byte> state, std::int64_t step) {
  const auto start = Clock::now();
  require_own_folder();
  rk::save_last(folder_, state, files_, last_damaged_ ? Rotate::kDropDamaged : Rotate::kKeepLast);
  last_damaged_ = false;
  saved_step_ = step;
  saved_at_ = Clock::now();
  seconds_ = std::chrono::duration<double>(saved_at_ - start).count();
}

void RunSaver::save_best(std::span<const std::byte> state, std::int64_t step) {
  require_own_folder();
  rk::save_best(folder_, state, files_);
  best_step_ = step;
}

std::string RunSaver::saved_before() const {
  const std::int64_t step = saved_step_ > 0 ? saved_step_ : best_step_;
  if (step <= 0) return "nothing was saved before";
  if (count_checkpoints() == 0) return "what was saved before is no longer in " + folder_;
  return fmt::format("the last save is that of step {}, from which --resume auto goes on", step);
}

double RunSaver::minutes_since() const {
  return std::chrono::duration<double, std::ratio<60>>(Clock::now() - saved_at_).count();
}

}  // namespace rk
