// The folder of a run: who may write to it, and which of its checkpoints to go on from.
//
//   last.h5       the newest state          previous.h5   the one before
//   best.h5       the best one so far       .lock         held while a run writes here
#pragma once

#include "weights/atomic_file.h"
#include "weights/checkpoint.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

inline constexpr const char* kLastFile = "last.h5";
inline constexpr const char* kPreviousFile = "previous.h5";
inline constexpr const char* kBestFile = "best.h5";
inline constexpr const char* kLockFile = ".lock";
// What a run writes into its folder, beside the lock: checkpoints, then text.
inline constexpr std::array kRunCheckpoints = {kLastFile, kPreviousFile, kBestFile};
inline constexpr std::array kRunTexts = {"settings.toml", "metrics.jsonl", "metrics.csv",
                                         "run.json",      "bad_files.txt", "diverged.json"};

// InputError where `path`, which should be a checkpoint, is a folder; it names the best.h5 there.
void refuse_folder(const std::string& path);

// InputError unless a folder of that name can be made (or is there) and the disk has room for
// `bytes`. Makes nothing, so that a run can ask before hours of work.
void require_room(const std::string& folder, std::uint64_t bytes, FileCalls& calls);

// Held for the life of the object; the system releases it when the process dies, however it dies.
// Makes the folder where there is none. What it made, folder and lock file, goes again with the
// object unless keep() was called; a folder that holds anything else stays.
//
// InputError naming the other process where the folder is in use, and where .lock is not a file of
// this class: a link, or anything that holds more than a process number. A file system without
// locks is a note.
class FolderLock {
 public:
  FolderLock(const std::string& folder, FileCalls& calls);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  void keep() { keep_ = true; }
  // Whether another lock lies where this one did: the folder was moved, and what is there now is
  // another run's.
  bool replaced() const;
  // InputError where it was replaced. To be asked before anything is written.
  void require_own_folder() const;

 private:
  explicit FolderLock(const std::string& folder);
  void open();
  // Whether the file is still the folder's; another process may have removed it before the lock.
  bool in_place() const;

  std::string folder_, path_;
  std::vector<std::string> made_;  // folders, the outermost first
  int descriptor_ = -1;
  bool made_file_ = false, keep_ = false;
  bool numbered_ = false;  // the file system knows a file again
};

// The last.h5 that is replaced stays as previous.h5, unless it is known to be damaged: then the
// previous.h5 there is the better one and stays.
enum class Rotate : std::uint8_t { kKeepLast, kDropDamaged };
void save_last(const std::string& folder, std::span<const std::byte> bytes, FileCalls& calls,
               Rotate rotate = Rotate::kKeepLast);
void save_best(const std::string& folder, std::span<const std::byte> bytes, FileCalls& calls);

struct Resumable {
  std::unique_ptr<Checkpoint> checkpoint;  // null: the folder holds none at all
  std::vector<std::string> skipped;        // one line for each that was looked at and is not valid
  bool last_damaged = false;               // last.h5 is among those
};

// The newest valid checkpoint. Folders with checkpoints of which none is valid are an InputError.
// SystemError where the system would not read one, which is no reason to pass it over.
Resumable find_resumable(const std::string& folder);

}  // namespace rk
