// Identifies the file behind a descriptor and its state: if equal before and after, nobody replaced
// the file or wrote to it in between.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace rk {

struct FileIdentity {
  std::uint64_t device = 0, inode = 0, bytes = 0, seconds = 0, nanoseconds = 0;
  bool operator==(const FileIdentity&) const = default;
};

inline FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          static_cast<std::uint64_t>(status.st_mtim.tv_sec),
          static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
}

}  // namespace rk
