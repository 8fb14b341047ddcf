#include "engine/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/error.h"

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

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    fail<InputError>("{}: cannot be opened ({}); check the path and its permissions", path,
                     reason(errno));
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
      fail<InputError>("{}: cannot be read ({}); check the disk or the network mount", path,
                       reason(errno));
    }
    if (count == 0) {
      fail<InputError>("{}: became shorter while it was read; copy it again", path);
    }
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace rk
