// The folder of a run: locking it for writing, and choosing the checkpoint to resume from.
//
//   last.h5        the newest state          previous.h5    the one before
//   best.h5        the best one so far       .lock          held while a run writes here
//   settings.toml  what it takes, a recipe   run.json       how the run was produced
//   metrics.jsonl  a line for each epoch     metrics.csv    their numbers as a table, on request
//   bad_files.txt  unreadable pictures       diverged.json  where training diverged
#pragma once

#include "weights/atomic_file.h"
#include "weights/checkpoint.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

inline constexpr const char* kLastFile = "last.h5";
inline constexpr const char* kPreviousFile = "previous.h5";
inline constexpr const char* kBestFile = "best.h5";
inline constexpr const char* kLockFile = ".lock";
inline constexpr const char* kSettingsFile = "settings.toml";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kTableFile = "metrics.csv";
inline constexpr const char* kOriginFile = "run.json";
inline constexpr const char* kBadImagesFile = "bad_files.txt";
inline constexpr const char* kDivergenceFile = "diverged.json";
// The files that a run writes into its folder besides the lock: checkpoints, then texts.
inline constexpr std::array kRunCheckpoints = {kLastFile, kPreviousFile, kBestFile};
inline constexpr std::array kRunTexts = {kSettingsFile, kMetricsFile,   kTableFile,
                                         kOriginFile,   kBadImagesFile, kDivergenceFile};

// Throws InputError if `path`, which should be a checkpoint, is a folder, or the best.h5 of a run
// that has none yet; names the checkpoint to take.
void require_checkpoint_file(const std::string& path);

// Throws InputError unless a folder of that name exists or can be created, the disk has room for
// `files` of `file_bytes` each, and the system lets this program write one (ulimit -f). Creates
// nothing, so that a run can check before hours of work.
void require_room(const std::string& folder, std::uint64_t file_bytes, std::int64_t files,
                  FileCalls& calls);

// Locks a run's folder for the life of the object; the system releases the lock when the process
// dies, however it dies. Creates the folder if there is none. Unless keep() was called, the
// destructor removes the folder and the lock file that the object created; a folder that holds
// anything else stays.
//
// Throws InputError if the folder is in use (naming the other process) or if .lock was not written
// by this class: a link, or a file that holds more than a process number. A file system without
// locks only gives a note.
class FolderLock {
 public:
  FolderLock(const std::string& folder, FileCalls& calls);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  void keep() { keep_ = true; }
  // Whether another lock file is now in this lock's place: the folder was moved, and the one there
  // now belongs to another run.
  bool replaced() const;
  // Throws InputError if replaced(). Call before writing anything.
  void require_own_folder() const;

 private:
  explicit FolderLock(const std::string& folder);
  void open();
  // Whether the open file is still the folder's .lock; another process may have removed it before
  // it was locked.
  bool in_place() const;

  std::string folder_, path_;
  std::vector<std::string> made_;  // created folders, the outermost first
  int descriptor_ = -1;
  bool made_file_ = false, keep_ = false;
  bool numbered_ = false;  // the file system has stable inode numbers
};

// The replaced last.h5 is kept as previous.h5, unless it is known to be damaged: then the existing
// previous.h5 is better and stays.
enum class Rotate : std::uint8_t { kKeepLast, kDropDamaged };
void save_last(const std::string& folder, std::span<const std::byte> bytes, FileCalls& calls,
               Rotate rotate = Rotate::kKeepLast);
void save_best(const std::string& folder, std::span<const std::byte> bytes, FileCalls& calls);

struct Resumable {
  std::unique_ptr<Checkpoint> checkpoint;  // null: the folder has none
  std::vector<std::string> skipped;        // one line for each invalid checkpoint
  bool last_damaged = false;               // last.h5 is among the skipped
};

// Whether find_resumable() finds something to look at. Throws SystemError if the system does not
// say.
bool holds_checkpoint(const std::string& folder);

// Returns the newest valid checkpoint. Throws InputError if the folder has checkpoints but no valid
// one, or one that holds weights alone, which the next save would replace; SystemError if the
// system fails to read one, since it may be valid and must not be skipped.
Resumable find_resumable(const std::string& folder);

}  // namespace rk
