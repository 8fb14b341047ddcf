// Arrays by name: .npy (one, without a name), .npz, safetensors. What kind a file is is told by its
// bytes. Nothing in it is executed; arrays of pickled objects are refused where they are asked for.
//
// Errors are InputErrors "<file>: <what>; <what to do>".
#pragma once

#include "retrieval/files/stored_array.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

class ArrayFile {
 public:
  // `bytes` must outlive it, or be kept by `owner`.
  ArrayFile(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string path);

  const std::string& path() const { return path_; }
  const std::string& format() const { return format_; }  // "npy", "npz", "safetensors"

  // By this very name.
  const StoredArray& named(const std::string& name) const;
  // The first of these names that it has, in large or small letters; null: none.
  const StoredArray* find(std::span<const std::string> names) const;
  // What can be read.
  std::vector<const StoredArray*> all() const;
  // "it holds 'a' (float32 [3, 4]), 'b' (<U5 [3])"
  std::string contents() const;
  // Refuses where what was unpacked and `more` bytes are more than a file of its size may take.
  void check_memory(std::uint64_t more) const;

 private:
  struct Member {
    std::string name;
    StoredArray array;
    std::string problem;  // why it cannot be read; empty: it can
  };
  void read_npz(std::span<const std::byte> bytes);
  void read_tensors(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);
  const StoredArray& checked(const Member& member) const;

  std::string path_, format_;
  std::uint64_t file_bytes_, unpacked_bytes_ = 0;
  std::vector<Member> members_;
};

// Whether these are the bytes of such a file.
bool holds_arrays(std::span<const std::byte> bytes);

// The same of a file on disk, mapped (retrieval/files/mapped_file.h).
ArrayFile open_arrays(const std::string& path);

// FILE:NAME, which asks for the array or column NAME of FILE; a FILE of all of that name is taken
// for itself.
struct FileAndName {
  std::string file, name;  // name is empty where none is given
};
FileAndName file_and_name(const std::string& text);

}  // namespace rk
