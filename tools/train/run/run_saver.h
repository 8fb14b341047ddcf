// The checkpoints of a run's folder: whether there is room for them, which step the newest holds,
// when the next is due. Files are written by the first process, which holds the folder's lock.
#pragma once

#include "weights/atomic_file.h"
#include "weights/run_folder.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace rk {

class RunSaver {
 public:
  // lock: of the folder; null in all processes but the first. last_damaged: last.h5 cannot be read,
  // and is not to take the place of a previous.h5 that can.
  RunSaver(std::string folder, std::unique_ptr<FolderLock> lock, bool last_damaged)
      : folder_(std::move(folder)), lock_(std::move(lock)), last_damaged_(last_damaged) {}

  // The folder holds the state after `step` steps, from which the run goes on.
  void resume_from(std::int64_t step) { saved_step_ = step; }

  // Throws InputError unless the disk has room for what the folder needs beyond its present files:
  // last.h5, previous.h5, best.h5 and the one being written; fewer if the run saves only `saves`
  // times.
  void require_room(std::uint64_t checkpoint_bytes, std::int64_t saves);
  // Makes the folder the run's: it stays when the run ends, and what earlier starts left behind
  // goes. old_table: so does a metrics.csv, which would no longer be updated; a note says so.
  // Without the lock it is only remembered that the first process did so.
  void take_folder(bool old_table);
  bool took_folder() const { return took_folder_; }

  // Throw InputError, also if the folder was moved away and another run's is in its place.
  void save_last(std::span<const std::byte> state, std::int64_t step);
  void save_best(std::span<const std::byte> state, std::int64_t step);
  void require_own_folder() const { lock_->require_own_folder(); }
  bool lost_folder() const { return lock_->replaced(); }

  std::int64_t saved_step() const { return saved_step_; }  // -1: nothing is saved yet
  // The end of a message: from what --resume auto goes on if nothing more is saved.
  std::string saved_before() const;
  double seconds() const { return seconds_; }  // of the last save; 0: none yet
  // Since the last save, or the last restart_clock().
  double minutes_since() const;
  void restart_clock() { saved_at_ = std::chrono::steady_clock::now(); }

 private:
  std::int64_t count_checkpoints() const;  // those that the folder holds

  std::string folder_;
  std::unique_ptr<FolderLock> lock_;
  bool last_damaged_;
  bool took_folder_ = false;
  FileCalls files_;
  std::int64_t saved_step_ = -1;
  std::int64_t best_step_ = -1;  // of best.h5, if this start has saved it
  double seconds_ = 0;
  std::chrono::steady_clock::time_point saved_at_;
};

}  // namespace rk
