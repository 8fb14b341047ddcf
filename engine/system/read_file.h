// Reading whole files, with a cap. Only regular files are read (no directories, pipes or devices),
// so nothing here can block or grow without end. Errors: InputError "<path>: <what>; <what to do>";
// where the system would not give what may well be a good file, SystemError.
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
// memory. What is asked again later may be there.
class SystemError : public InputError {
 public:
  using InputError::InputError;
};

// Open for reading from its beginning on.
class RegularFile {
 public:
  RegularFile(const std::string& path, std::uint64_t max_bytes);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  std::uint64_t bytes() const { return identity_.bytes; }
  const FileIdentity& identity() const { return identity_; }  // as it was opened
  // The bytes at `offset`, as many as `to` has; fewer are an error.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string path_;
  int descriptor_;
  FileIdentity identity_;
};

std::vector<std::byte> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace rk
