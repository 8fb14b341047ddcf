#include "weights/run_folder.h"

#include "engine/error.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace rk {
namespace {

namespace fs = std::filesystem;

std::string in_folder(const std::string& folder, const char* name) {
  return (fs::path(folder) / name).string();
}

std::unique_ptr<Checkpoint> try_open(const std::string& path, std::vector<std::string>& skipped) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return nullptr;
  try {
    return std::make_unique<Checkpoint>(path);
  } catch (const InputError& error) {
    skipped.push_back(error.what());
    return nullptr;
  }
}

}  // namespace

void require_room(const std::string& folder, std::uint64_t bytes, FileCalls& calls) {
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
  const std::uint64_t available = calls.free_bytes(there.c_str());
  if (available < bytes) {
    fail<InputError>(
        "{}: {:.1f} MiB are needed for checkpoints and {:.1f} MiB are free; make space on that "
        "disk or give another --out",
        folder, static_cast<double>(bytes) / (1 << 20), static_cast<double>(available) / (1 << 20));
  }
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = in_folder(folder, kLockFile);
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    const int error = errno;
    fail<InputError>("{}: cannot be written ({}); check its permissions", folder,
                     std::strerror(error));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    char owner[32] = {};
    const ssize_t got = ::pread(descriptor_, owner, sizeof(owner) - 1, 0);
    ::close(descriptor_);
    fail<InputError>(
        "{}: is being written to by another run (process {}); wait for it or give "
        "another folder",
        folder, got > 0 ? owner : "unknown");
  }
  const std::string pid = std::to_string(::getpid());
  // For people only: the lock is the flock above, whatever the file says.
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, pid.data(), pid.size(), 0) < 0) {
    errno = 0;
  }
}

FolderLock::~FolderLock() { ::close(descriptor_); }

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
  if (result.checkpoint) return result;  // nothing saved is further on than that
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
