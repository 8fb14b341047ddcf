// Reads files, up to a maximum size. Only regular files are read (no directories, pipes or
// devices), so nothing here can block or grow without end. Throws InputError "<path>: <what>; <what
// to do>", or SystemError if the system failed and the file itself may well be good.
#pragma once

#include "engine/base/error.h"
#include "engine/system/file_identity.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rk {

// The system failed, not the file: no permission, a failing disk or server, too many open files, no
// memory. A later attempt may succeed.
class SystemError : public InputError {
 public:
  using InputError::InputError;
};

// A file opened for reading.
class RegularFile {
 public:
  RegularFile(const std::string& path, std::uint64_t max_bytes);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  std::uint64_t bytes() const { return identity_.bytes; }
  const FileIdentity& identity() const { return identity_; }  // when it was opened
  // Reads to.size() bytes at `offset`; throws InputError if the file has fewer.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string path_;
  int descriptor_;
  FileIdentity identity_;
};

// Whether there is anything of that name, a link's target included. Throws as above if the system
// does not say: a file that only cannot be looked at is not a missing one.
bool file_exists(const std::string& path);

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace rk
