// Flags for existing embeddings.
#pragma once

#include "tools/cli/flags/flags.h"
#include "tools/eval/inputs/described_rows.h"

#include <cstddef>
#include <string>
#include <vector>

namespace rk {

// The files of one evaluation, as given: FILE or FILE:NAME.
struct RowFiles {
  std::string embeddings;  // empty: a network computes them
  std::string labels;      // empty: in the embeddings' file
  std::string cameras;     // empty: there, if it has some
  std::string gallery;     // empty: the queries among themselves
  std::string gallery_labels;
  std::string gallery_cameras;
  bool normalize = false;
};

struct FileOptions {
  std::string embeddings;
  std::string labels;
  std::string cameras;
  std::vector<std::string> galleries;  // with --compare the first's and the second's
  std::string gallery_labels;
  std::string gallery_cameras;
  bool normalize = false;

  void add_to(Flags& flags);
  // The files of --embeddings, or of one of the two that are compared: their rows, and which it is.
  RowFiles of(const std::string& rows, std::size_t which = 0) const;
  // All files to read, without the names of arrays.
  std::vector<std::string> files() const;
};

// Throws InputError if the files cannot be read as embeddings and labels.
DescribedRows read_queries(const RowFiles& files);

// Reads the gallery, with its own labels.
DescribedRows read_gallery(const RowFiles& files);

// Maps the gallery's labels to those of `queries`. Throws InputError if the two cannot be compared.
void match_gallery(const DescribedRows& queries, DescribedRows& gallery);

}  // namespace rk
