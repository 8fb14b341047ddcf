// Flags for existing embeddings.
#pragma once

#include "tools/cli/flags/flags.h"
#include "tools/eval/inputs/described_rows.h"

#include <string>
#include <vector>

namespace rk {

struct FileOptions {
  std::string embeddings;  // empty: a network computes them
  std::string labels;      // empty: in the embeddings' file
  std::string gallery;     // empty: the queries among themselves
  std::string gallery_labels;
  bool normalize = false;

  void add_to(Flags& flags);
  // The files to read, without the names of arrays.
  std::vector<std::string> files() const;
};

// Reads --embeddings. Throws InputError if the files cannot be read as embeddings and labels.
DescribedRows read_queries(const FileOptions& options);

// Reads --gallery, with its own labels.
DescribedRows read_gallery(const FileOptions& options);

// Maps the gallery's labels to those of `queries`. Throws InputError if the two cannot be compared.
void match_gallery(const DescribedRows& queries, DescribedRows& gallery);

}  // namespace rk
