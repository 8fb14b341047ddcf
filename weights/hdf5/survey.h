// An HDF5 file whose whole structure has been checked before anything is read from it: which
// objects it has, and that none of them touches another file, another program or too much memory
// (for the rules see file.h). Hdf5Reader reads only from such files.
#pragma once

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "weights/hdf5/handle.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace rk {

// The most bytes that one data set may claim in a file of `file_bytes`.
constexpr std::uint64_t most_dataset_bytes(std::uint64_t file_bytes) {
  return std::max(std::uint64_t{1} << 30, file_bytes);
}
// The limit for all paths together: the name of a group is part of the path of everything in it,
// and hard links cost a file next to nothing.
inline constexpr std::uint64_t kMaxPathBytes = std::uint64_t{64} << 20;

struct SurveyedHdf5 {
  std::string name;
  std::uint64_t file_bytes = 0;
  Hdf5FileId file;
  std::map<std::string, bool> objects;  // full path -> whether it is a data set

  // Walks the whole file and throws InputError for what must be refused. `name`, `file_bytes` and
  // `file` must be set.
  void survey();

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<InputError>("{}: {}", printable(name), fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void damaged(const std::string& path) const;
  [[noreturn]] void too_many() const;

 private:
  void walk(const std::string& group, int depth);
  void check_storage(const std::string& path, hid_t dataset) const;
  void check_chunk(const std::string& path, hid_t plist, std::size_t item,
                   std::uint64_t claimed) const;

  std::uint64_t path_bytes_ = 0;  // of all paths so far, and of those pending in open groups
};

}  // namespace rk
