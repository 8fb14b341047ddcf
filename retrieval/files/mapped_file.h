// A whole file as bytes that the system loads on access, so that embeddings may be larger than
// memory.
//
// A file that is truncated while it is mapped, or a disk that fails, would end the program by
// SIGBUS. Instead the lost pages read as zeros from then on, and check_mapped_files() throws: call
// it before printing or writing anything computed from a mapped file. At most 16 files can be
// mapped at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rk {

class MappedFile {
 public:
  // Throws InputError or SystemError as RegularFile does (engine/system/read_file.h).
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  int slot_ = -1;
};

// Throws InputError naming the file if pages of a mapped file were lost when they were read.
void check_mapped_files();

// Whether the file is HDF5. Throws as MappedFile does.
bool holds_hdf5(const std::string& path);

}  // namespace rk
