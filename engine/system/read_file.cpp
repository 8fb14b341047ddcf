#include "engine/system/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rk {
namespace {

// True if the file is missing or its name makes no sense; any other error is the system's.
bool of_the_file(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG ||
         error == EINVAL || error == EISDIR || error == ENXIO || error == ENODEV;
}

// Throws "<path>: <what> (<the system's reason>); <what to do>".
[[noreturn]] void refuse(const std::string& path, const char* what, int error, const char* advice) {
  const std::string line =
      fmt::format("{}: {} ({}); {}", path, what, std::generic_category().message(error), advice);
  if (of_the_file(error)) throw InputError(line);
  throw SystemError(line);
}

// O_NONBLOCK: opening a pipe without a writer must not wait.
int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

}  // namespace

RegularFile::RegularFile(const std::string& path, std::uint64_t max_bytes)
    : path_(path), descriptor_(open_to_read(path)) {
  struct stat status {};
  const bool opened = descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0;
  const int error = errno;
  identity_ = identity_of(status);
  if (opened && S_ISREG(status.st_mode) && bytes() <= max_bytes) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!opened) {
    refuse(path, "cannot be opened", error,
           error == EMFILE || error == ENFILE ? "raise the limit of open files (ulimit -n)"
                                              : "check the path and its permissions");
  }
  if (!S_ISREG(status.st_mode)) {
    fail<InputError>("{}: not a regular file; give the path of a file", path);
  }
  fail<InputError>("{}: {} MiB, more than the limit of {} MiB; give another file", path,
                   bytes() >> 20, max_bytes >> 20);
}

bool file_exists(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  refuse(path, "cannot be looked at", errno, "check the path and its permissions");
}

RegularFile::~RegularFile() { ::close(descriptor_); }

void RegularFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t count = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      refuse(path_, "cannot be read", errno, "check the disk or the network mount");
    }
    if (count == 0) {
      fail<InputError>("{}: became shorter while it was read; copy it again", path_);
    }
    to = to.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes) {
  const RegularFile file(path, max_bytes);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.bytes()));
  file.read(0, bytes);
  return bytes;
}

}  // namespace rk
