#include "engine/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rk {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// The file is not there, or its name makes no sense; whatever else happens is the system's doing.
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

}  // namespace

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    const int error = errno;
    refuse(path, "cannot be opened", error,
           error == EMFILE || error == ENFILE ? "raise the limit of open files (ulimit -n)"
                                              : "check the path and its permissions");
  }
  if (!S_ISREG(status.st_mode)) {
    fail<InputError>("{}: not a regular file; give the path of a file", path);
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > max_bytes) {
    fail<InputError>("{}: {} MiB, more than the limit of {} MiB; give another file", path,
                     size >> 20, max_bytes >> 20);
  }
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(file.get(), bytes.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      refuse(path, "cannot be read", errno, "check the disk or the network mount");
    }
    if (count == 0) {
      fail<InputError>("{}: became shorter while it was read; copy it again", path);
    }
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace rk
