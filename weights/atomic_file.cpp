#include "weights/atomic_file.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/number_in.h"
#include "engine/system/read_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace rk {
namespace {

constexpr mode_t kPermissions = 07777;

[[noreturn]] void refuse(const std::string& path, const char* what, int error) {
  fail<InputError>("{}: {}: {}; see that its folder exists, may be written and has space", path,
                   what, std::strerror(error));
}

// Resolves symbolic links, so that a link is not replaced by a file. The target need not exist.
std::string resolved(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as in Linux
  std::filesystem::path at = path;
  for (int links = 0;; ++links) {
    std::error_code error, ignored;
    const auto target = std::filesystem::canonical(at, error);
    if (!error) return target.string();
    // A pipe under /proc exists but has no canonical path.
    if (std::filesystem::exists(at, ignored)) return at.string();
    const auto next = std::filesystem::read_symlink(at, error);
    if (error) return at.string();
    if (links == kMaxLinks) refuse(path, "cannot be written", ELOOP);
    at = at.parent_path() / next;
  }
}

// The mode of the file at `path`, which its replacement keeps; nullopt if there is no file.
std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) {
    fail<InputError>("{}: is not a regular file, so it is not replaced; give another name", path);
  }
  return status.st_mode & kPermissions;
}

std::string folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string temporary_name(const std::string& path) {
  const std::filesystem::path target(path);
  return (target.parent_path() / fmt::format(".{}.tmp.{}", target.filename().string(), ::getpid()))
      .string();
}

// The temporary file beside `target`, until it replaces `target` or is removed.
class Temporary {
 public:
  Temporary(std::string target, FileCalls& calls)
      : calls_(calls), target_(std::move(target)), path_(temporary_name(target_)) {}
  ~Temporary() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (created_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  // Writes `bytes` and syncs them to the disk; `name` is the file's name in messages.
  void fill(const std::string& name, std::span<const std::byte> bytes) {
    const std::optional<mode_t> mode = mode_of(target_);
    const std::uint64_t available = calls_.free_bytes(folder_of(target_).c_str());
    if (available < bytes.size()) {
      fail<InputError>("{}: {} are needed and {} are free; make space on that disk", name,
                       needed_size(bytes.size()), free_size(available));
    }
    create(name);
    if (mode && calls_.set_mode(descriptor_, *mode) != 0) {
      refuse(name, "its mode cannot be kept", errno);
    }
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t written = calls_.write(descriptor_, bytes.data() + done, bytes.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) refuse(name, "cannot be written", written < 0 ? errno : ENOSPC);
      done += static_cast<std::size_t>(written);
    }
    if (calls_.sync(descriptor_) != 0) refuse(name, "does not reach the disk", errno);
    if (calls_.close(std::exchange(descriptor_, -1)) != 0) {
      refuse(name, "does not reach the disk", errno);
    }
  }

  // Throws InputError unless the file reads back as `bytes`.
  void compare(const std::string& name, std::span<const std::byte> bytes) const {
    constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
    const RegularFile file(path_, std::numeric_limits<std::uint64_t>::max());
    bool equal = file.bytes() == bytes.size();
    std::vector<std::byte> piece;
    for (std::size_t at = 0; equal && at < bytes.size(); at += piece.size()) {
      piece.resize(std::min(kPieceBytes, bytes.size() - at));
      file.read(at, piece);
      equal = std::memcmp(piece.data(), bytes.data() + at, piece.size()) == 0;
    }
    if (!equal) {
      fail<InputError>("{}: what is read back is not what was written; try another disk", name);
    }
  }

  void replace(const std::string& name) {
    if (calls_.rename(path_.c_str(), target_.c_str()) != 0) {
      refuse(name, "cannot be replaced", errno);
    }
    created_ = false;
    if (calls_.sync_folder(folder_of(target_).c_str()) != 0) {
      refuse(name, "its folder cannot be synced", errno);
    }
  }

 private:
  void create(const std::string& name) {
    descriptor_ = calls_.create(path_.c_str());
    if (descriptor_ < 0 && errno == EEXIST) {
      // Left by a dead process with our pid (in containers every run may have the same pid).
      ::unlink(path_.c_str());
      descriptor_ = calls_.create(path_.c_str());
    }
    if (descriptor_ < 0) refuse(name, "cannot be written", errno);
    created_ = true;
  }

  FileCalls& calls_;
  std::string target_, path_;
  int descriptor_ = -1;
  bool created_ = false;
};

// Gives the file at `path`, if there is one, the second name `previous`, replacing any file of that
// name.
void keep_as(const std::string& path, const std::string& previous, FileCalls& calls) {
  const std::string second = temporary_name(previous);
  ::unlink(second.c_str());
  if (calls.link(path.c_str(), second.c_str()) == 0) {
    if (calls.rename(second.c_str(), previous.c_str()) == 0) {
      // rename() between two names of one file does nothing and leaves the second name, so remove
      // it.
      ::unlink(second.c_str());
      return;
    }
    const int error = errno;
    ::unlink(second.c_str());
    refuse(previous, "cannot be replaced", error);
  }
  if (errno == ENOENT) return;
  if (errno == EXDEV) {
    constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();
    write_atomic(previous, read_file(path, kAnySize), calls);
    return;
  }
  if (calls.rename(path.c_str(), previous.c_str()) != 0) {
    refuse(previous, "cannot be replaced", errno);
  }
}

// The process that created `file`, a temporary file of one of `names`; nullopt for any other file.
std::optional<pid_t> owner_of(std::string_view file, std::span<const std::string> names) {
  for (const std::string& name : names) {
    const std::string begins = fmt::format(".{}.tmp.", name);
    if (!file.starts_with(begins)) continue;
    const std::optional<pid_t> pid = number_in<pid_t>(file.substr(begins.size()));
    if (pid && *pid > 0) return pid;
  }
  return std::nullopt;
}

}  // namespace

int FileCalls::create(const char* path) {
  return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}
ssize_t FileCalls::write(int descriptor, const void* data, std::size_t bytes) {
  return ::write(descriptor, data, bytes);
}
int FileCalls::set_mode(int descriptor, mode_t mode) { return ::fchmod(descriptor, mode); }
int FileCalls::sync(int descriptor) { return ::fsync(descriptor); }
int FileCalls::close(int descriptor) { return ::close(descriptor); }
int FileCalls::rename(const char* from, const char* to) { return std::rename(from, to); }
int FileCalls::link(const char* from, const char* to) { return ::link(from, to); }
int FileCalls::sync_folder(const char* folder) {
  const int descriptor = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  // Some network file systems cannot sync a folder; whether their rename is durable is up to them.
  return result != 0 && error == EINVAL ? 0 : result;
}
int FileCalls::lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB); }
std::uint64_t FileCalls::free_bytes(const char* folder) {
  struct statvfs status {};
  if (::statvfs(folder, &status) != 0) return std::numeric_limits<std::uint64_t>::max();
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

void write_atomic(const std::string& path, std::span<const std::byte> bytes) {
  FileCalls calls;
  write_atomic(path, bytes, calls);
}

void write_atomic(const std::string& path, std::string_view text) {
  write_atomic(path, std::as_bytes(std::span(text)));
}

void write_atomic(const std::string& path, std::span<const std::byte> bytes, FileCalls& calls) {
  const std::string target = resolved(path);
  Temporary temporary(target, calls);
  temporary.fill(path, bytes);
  temporary.replace(path);
}

void write_atomic_checked(const std::string& path, std::span<const std::byte> bytes,
                          const std::function<void()>& accept, FileCalls& calls) {
  const std::string target = resolved(path);
  Temporary temporary(target, calls);
  temporary.fill(path, bytes);
  temporary.compare(path, bytes);
  accept();
  temporary.replace(path);
}

void write_rotating(const std::string& path, const std::string& previous,
                    std::span<const std::byte> bytes, FileCalls& calls) {
  const std::string target = resolved(path);
  Temporary temporary(target, calls);
  temporary.fill(path, bytes);
  keep_as(target, previous, calls);
  temporary.replace(path);
}

void remove_stale_temporaries(const std::string& folder, std::span<const std::string> names) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    const auto owner = owner_of(file, names);
    std::error_code ignored;
    if (!owner || entry.is_symlink(ignored) || !entry.is_regular_file(ignored)) continue;
    const bool alive = *owner != ::getpid() && (::kill(*owner, 0) == 0 || errno != ESRCH);
    if (!alive) ::unlink(entry.path().c_str());
  }
}

}  // namespace rk
