// A label for each row, from an array or a column of a table: whole numbers of any width, or names.
#pragma once

#include "retrieval/files/array_file.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct Labels {
  std::vector<std::int64_t> labels;
  std::vector<std::string> classes;  // of names: a label is a position here; else empty
  std::string what;                  // "int64", "names", "column species, names"
};

// What arrays and columns of labels are mostly called, in small letters.
std::span<const std::string> usual_label_names();

// `from` ("y.npy", "e.npz: 'labels'") and `rows_of` begin and end the messages of the InputErrors:
// another number of labels than rows, floating-point labels that are not whole.
Labels labels_of(const StoredArray& array, std::int64_t rows, std::int64_t dim,
                 const std::string& from, const std::string& rows_of);

// Of another file than the embeddings', FILE or FILE:NAME: an array, /labels of HDF5, or a column
// of a table (retrieval/files/text_column.h).
Labels read_labels(const std::string& from, std::int64_t rows, std::int64_t dim,
                   const std::string& rows_of);

}  // namespace rk
