// The folder of a run: who may write to it, and which of its checkpoints to go on from.
//
//   last.h5       the newest state          previous.h5   the one before
//   best.h5       the best one so far       .lock         held while a run writes here
#pragma once

#include "weights/atomic_file.h"
#include "weights/checkpoint.h"

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

// InputError unless a folder of that name can be made (or is there) and the disk has room for
// `bytes`. Makes nothing, so that a run can ask before hours of work.
void require_room(const std::string& folder, std::uint64_t bytes, FileCalls& calls);

// Held for the life of the object; the system releases it when the process dies, however it dies.
// InputError naming the other process where the folder is in use.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
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
Resumable find_resumable(const std::string& folder);

}  // namespace rk
