// A whole file as bytes that the system brings when they are looked at, so that embeddings may be
// larger than memory.
//
// A file that is cut off while it is mapped, or a disk that fails, would end the program by SIGBUS.
// Instead the pages that are gone read as zeros from then on, and check_mapped_files() says so:
// whoever made something of a mapped file calls it before anything of that is printed or written.
// At most 16 files are mapped at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rk {

class MappedFile {
 public:
  // InputError or SystemError as RegularFile (engine/system/read_file.h).
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  int slot_ = -1;
};

// InputError that names the file where pages of one were gone when they were looked at.
void check_mapped_files();

}  // namespace rk
