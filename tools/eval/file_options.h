// Flags for embeddings that are there already.
#pragma once

#include "tools/eval/rows.h"

#include <CLI/CLI.hpp>

#include <string>

namespace rk {

struct FileOptions {
  std::string embeddings;  // empty: a network makes them
  std::string gallery;     // empty: searched in among themselves

  void add_to(CLI::App& app);
};

// InputError where the file cannot be read as embeddings.
Rows read_rows(const std::string& path);

// The gallery in the labels of `queries`. InputError where the two cannot be compared.
Rows read_gallery(const FileOptions& options, const Rows& queries);

}  // namespace rk
