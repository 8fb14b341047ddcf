// An HDF5 file whose whole content has been looked at before anything is read from it: what is in
// it, and that none of it touches another file, another program or too much memory (the rules are
// those of file.h). Hdf5Reader reads from such a file only.
#pragma once

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "weights/hdf5/handle.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace rk {

// What one data set of a file of so many bytes may claim.
constexpr std::uint64_t most_dataset_bytes(std::uint64_t file_bytes) {
  return std::max(std::uint64_t{1} << 30, file_bytes);
}
// All paths together: a group's name stands in the path of everything in it, and hard links cost a
// file next to nothing.
inline constexpr std::uint64_t kMaxPathBytes = std::uint64_t{64} << 20;

struct SurveyedHdf5 {
  std::string name;
  std::uint64_t file_bytes = 0;
  Hdf5FileId file;
  std::map<std::string, bool> objects;  // full path -> is it a data set

  // After `name`, `file_bytes` and `file` are set: walks all of it and refuses what it must.
  void survey();

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<InputError>("{}: {}", printable(name), fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void damaged(const std::string& path) const;

 private:
  void walk(const std::string& group, int depth);
  void check_storage(const std::string& path, hid_t dataset) const;
  void check_chunk(const std::string& path, hid_t plist, std::size_t item,
                   std::uint64_t claimed) const;

  std::uint64_t path_bytes_ = 0;  // so far, and of what is to come in the groups under way
};

}  // namespace rk
