// Flags for embeddings that a network computes from pictures.
#pragma once

#include "tools/cli/flags/flags.h"

#include <cstdint>
#include <string>

namespace rk {

struct NetworkOptions {
  std::string checkpoint;  // empty: embeddings come from a file
  std::string arch;
  std::string data;
  std::string split = "test";
  std::string gallery_split;  // empty: no split is searched in
  std::string save;
  std::int64_t batch = 64;
  int workers = 0;
  std::string precision = "fp32";
  bool skip_bad = false;

  void add_to(Flags& flags);
};

}  // namespace rk
