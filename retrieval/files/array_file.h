// Arrays by name: .npy (one, without a name), .npz, safetensors. The file's bytes tell its format.
// Nothing in it is executed; requesting an array of pickled objects is an error.
//
// Errors are InputErrors "<file>: <what>; <what to do>".
#pragma once

#include "retrieval/files/stored_array.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

class MappedFile;

class ArrayFile {
 public:
  // `bytes` must outlive the ArrayFile, or be kept alive by `owner`.
  ArrayFile(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string path);

  const std::string& path() const { return path_; }
  const std::string& format() const { return format_; }  // "npy", "npz", "safetensors"

  // The array of exactly this name; throws if there is none.
  const StoredArray& named(const std::string& name) const;
  // The array with the first of these names that the file has, ignoring case; null if it has none.
  const StoredArray* find(std::span<const std::string> names) const;
  // All readable arrays.
  std::vector<const StoredArray*> all() const;
  // "it holds 'a' (float32 [3, 4]), 'b' (<U5 [3])"
  std::string contents() const;
  // Throws if the bytes unpacked from the file plus `more` exceed what a file of its size may take.
  // Files of which nothing is unpacked have no limit.
  void check_memory(std::uint64_t more) const;

 private:
  struct Member {
    std::string name;
    StoredArray array;
    std::string problem;  // why it cannot be read; empty if it can
  };
  void read_npz(std::span<const std::byte> bytes);
  void read_tensors(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);
  const StoredArray& checked(const Member& member) const;

  std::string path_, format_;
  std::uint64_t file_bytes_, unpacked_bytes_ = 0;
  std::vector<Member> members_;
};

// Whether these bytes are a file in one of the formats above.
bool holds_arrays(std::span<const std::byte> bytes);

// Opens a file on disk, mapped (retrieval/files/mapped_file.h); or one that is mapped already, for
// a caller that asks afterwards whether all of it was there.
ArrayFile open_arrays(const std::string& path);
ArrayFile open_arrays(const std::shared_ptr<const MappedFile>& file, const std::string& path);

// Splits FILE:NAME, which means the array or column NAME of FILE; if a file with the whole text as
// its name exists, it is meant.
struct FileAndName {
  std::string file, name;  // name is empty if none is given
};
FileAndName file_and_name(const std::string& text);

}  // namespace rk
