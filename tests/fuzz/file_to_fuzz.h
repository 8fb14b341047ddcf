// Writes the bytes of one run to a file, for code that reads paths. A process has one file, which
// every run overwrites.
#pragma once

#include "engine/base/text_of.h"
#include "tests/support/temporary_folder.h"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>

namespace rk {

inline std::string file_to_fuzz(std::span<const std::byte> bytes) {
  static const TemporaryFolder folder;
  std::string path = folder.in("input");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text_of(bytes);
  if (!file.flush()) std::abort();  // disk full: the run would read other bytes
  return path;
}

}  // namespace rk
