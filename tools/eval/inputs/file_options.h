// Flags for embeddings that are there already.
#pragma once

#include "tools/cli/flags.h"
#include "tools/eval/inputs/rows.h"

#include <string>
#include <vector>

namespace rk {

struct FileOptions {
  std::string embeddings;  // empty: a network makes them
  std::string labels;      // empty: in the file of the embeddings
  std::string gallery;     // empty: searched in among themselves
  std::string gallery_labels;
  bool normalize = false;

  void add_to(Flags& flags);
  // What is read, without names of arrays.
  std::vector<std::string> files() const;
};

// --embeddings. InputError where the files cannot be read as embeddings and their labels.
Rows read_queries(const FileOptions& options);

// --gallery, in labels of its own.
Rows read_gallery(const FileOptions& options);

// Gives it the labels of `queries`. InputError where the two cannot be compared.
void match_gallery(const Rows& queries, Rows& gallery);

}  // namespace rk
