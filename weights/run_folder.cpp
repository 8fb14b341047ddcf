#include "weights/run_folder.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/read_file.h"
#include "weights/sealed_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

std::string in_folder(const std::string& folder, const char* name) {
  return (fs::path(folder) / name).string();
}

// Creates `folder` and its missing parents, and appends the created folders to `made`.
void make_folders(const std::string& folder, std::vector<std::string>& made) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    missing.push_back(at);
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (fs::create_directory(*at, error)) made.push_back(at->string());
    if (error) {
      fail<InputError>("{}: cannot be made ({}); give another --out", folder, error.message());
    }
  }
}

// The content of a lock file, or the first bytes of another file.
std::string first_bytes(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

bool only_digits(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

std::unique_ptr<Checkpoint> try_open(const std::string& path, std::vector<std::string>& skipped) {
  Seal seal;
  try {
    if (!file_exists(path)) return nullptr;
    require_checkpoint_file(path);
    seal = check_seal(path);
  } catch (const SystemError&) {
    throw;  // it may be the newest one there is
  } catch (const OtherVersion&) {
    throw;  // it is whole, so that a run from an earlier one would replace it
  } catch (const InputError& error) {
    skipped.push_back(error.what());
    return nullptr;
  }
  // It is whole: whatever keeps it from being read now, no earlier one may take its place.
  auto checkpoint = std::make_unique<Checkpoint>(path, seal);
  if (checkpoint->has_run()) return checkpoint;
  // Whole too.
  fail<InputError>(
      "{}: holds weights alone, no run, and a run that goes on would put its own in their place; "
      "move the file away, or begin a run with --weights and another --out",
      path);
}

}  // namespace

bool holds_checkpoint(const std::string& folder) {
  return std::ranges::any_of(
      kRunCheckpoints, [&](const char* name) { return file_exists(in_folder(folder, name)); });
}

void require_checkpoint_file(const std::string& path) {
  std::error_code ignored;
  const auto there = [&](const fs::path& file) { return fs::exists(file, ignored); };
  const fs::path file(path);
  if (fs::is_directory(file, ignored)) {
    const fs::path best = file / kBestFile, last = file / kLastFile;
    fail<InputError>("{}: is a folder; give {}", path,
                     there(best)   ? best.string()
                     : there(last) ? last.string()
                                   : "the path of a file");
  }
  const fs::path last = file.parent_path() / kLastFile;
  if (file.filename() == kBestFile && !there(file) && there(last)) {
    fail<InputError>("{}: is not there; {} is the newest state of its run", path, last.string());
  }
}

void require_room(const std::string& folder, std::uint64_t file_bytes, std::int64_t files,
                  FileCalls& calls) {
  std::error_code ignored;
  fs::path there = fs::absolute(folder, ignored);
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, ignored)) {
    fail<InputError>("{}: {} is no folder; give another --out", folder, there.string());
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    fail<InputError>("{}: cannot be written ({}); give another --out", folder,
                     std::strerror(errno));
  }
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (files > 0 && limited && limit.rlim_cur < file_bytes) {
    fail<InputError>(
        "{}: a checkpoint takes {}, and files may have {} here; raise that limit (ulimit -f)",
        folder, needed_size(file_bytes), free_size(limit.rlim_cur));
  }
  const std::uint64_t bytes = file_bytes * static_cast<std::uint64_t>(files);
  const std::uint64_t available = calls.free_bytes(there.c_str());
  if (available < bytes) {
    fail<InputError>(
        "{}: {} are needed for checkpoints and {} are free; make space on that disk or give "
        "another --out",
        folder, needed_size(bytes), free_size(available));
  }
}

FolderLock::FolderLock(const std::string& folder)
    : folder_(folder), path_(in_folder(folder, kLockFile)) {}

FolderLock::FolderLock(const std::string& folder, FileCalls& calls) : FolderLock(folder) {
  // Some file systems have no stable inode numbers, so in_place() is never true; give up after 5
  // tries and accept the lock.
  for (int tries = 0; tries < 5 && !in_place(); ++tries) {
    open();
    int error = 0;
    do {
      error = calls.lock(descriptor_) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error == EWOULDBLOCK) {
      const std::string owner = first_bytes(descriptor_);
      made_file_ = false;  // it belongs to the owner now
      fail<InputError>(
          "{}: is being written to by another run (process {}); wait for it or give "
          "another folder",
          folder_, owner.empty() ? "unknown" : owner);
    }
    if (error != 0) {
      note(
          fmt::format("{}: its file system has no locks ({}); see to it that no other run writes "
                      "there",
                      folder_, std::strerror(error)));
    }
  }
  numbered_ = in_place();
  const std::string pid = std::to_string(::getpid());
  // For people only: the lock itself is the system's, whatever the file says.
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, pid.data(), pid.size(), 0) < 0) {
    errno = 0;
  }
}

void FolderLock::open() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  make_folders(folder_, made_);
  std::error_code ignored;
  if (fs::exists(folder_, ignored) && !fs::is_directory(folder_, ignored)) {
    fail<InputError>("{}: is a file; give a folder", folder_);
  }
  // Does not follow a link, nor wait for a pipe.
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  descriptor_ = ::open(path_.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
  made_file_ = descriptor_ >= 0;
  if (descriptor_ < 0 && errno == EEXIST) descriptor_ = ::open(path_.c_str(), kFlags);
  const int error = errno;
  if (descriptor_ < 0 && error != ELOOP) {
    const bool there = fs::exists(path_, ignored);  // then the folder itself may be fine
    fail<InputError>("{}: cannot be written ({}); check its permissions", there ? path_ : folder_,
                     std::strerror(error));
  }
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_nlink > 1 || !only_digits(first_bytes(descriptor_))) {
    fail<InputError>("{}: is not the lock of a run; remove it or give another folder", path_);
  }
}

bool FolderLock::in_place() const {
  struct stat mine {
  }, there{};
  return descriptor_ >= 0 && ::fstat(descriptor_, &mine) == 0 &&
         ::lstat(path_.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

bool FolderLock::replaced() const {
  struct stat there {};
  return numbered_ && ::lstat(path_.c_str(), &there) == 0 && !in_place();
}

void FolderLock::require_own_folder() const {
  if (!replaced()) return;
  fail<InputError>(
      "{}: is not the folder that this run began in, which was moved or replaced; nothing more is "
      "written there: go on from where it is now, with --out and --resume auto",
      folder_);
}

FolderLock::~FolderLock() {
  if (!keep_) {
    if (made_file_ && !replaced()) ::unlink(path_.c_str());
    for (auto at = made_.rbegin(); at != made_.rend(); ++at) ::rmdir(at->c_str());
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

void save_last(const std::string& folder, std::span<const std::byte> bytes, FileCalls& calls,
               Rotate rotate) {
  const std::string last = in_folder(folder, kLastFile);
  if (rotate == Rotate::kDropDamaged) {
    write_atomic(last, bytes, calls);
  } else {
    write_rotating(last, in_folder(folder, kPreviousFile), bytes, calls);
  }
}

void save_best(const std::string& folder, std::span<const std::byte> bytes, FileCalls& calls) {
  write_atomic(in_folder(folder, kBestFile), bytes, calls);
}

Resumable find_resumable(const std::string& folder) {
  Resumable result;
  result.checkpoint = try_open(in_folder(folder, kLastFile), result.skipped);
  if (result.checkpoint) return result;  // no other checkpoint is newer
  result.last_damaged = !result.skipped.empty();
  for (const char* name : {kPreviousFile, kBestFile}) {
    auto other = try_open(in_folder(folder, name), result.skipped);
    if (other && (!result.checkpoint || other->run().step > result.checkpoint->run().step)) {
      result.checkpoint = std::move(other);
    }
  }
  if (!result.checkpoint && !result.skipped.empty()) {
    fail<InputError>("{}: holds no valid checkpoint ({}); start anew in another folder", folder,
                     fmt::join(result.skipped, " | "));
  }
  return result;
}

}  // namespace rk
