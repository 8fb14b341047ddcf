// A label, or a camera, for each row, from an array or a column of a table: whole numbers of any
// width, or names.
#pragma once

#include "retrieval/files/array_file.h"
#include "retrieval/files/row_value.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rk {

class Hdf5Reader;

struct Labels {
  std::vector<std::int64_t> labels;
  // For names, and where HDF5 names its /labels in /classes: a label is a position in this list.
  std::vector<std::string> classes;
  std::string what;    // "int64", "names", "column species, names"
  bool names = false;  // the file holds names instead of numbers
};

// The elements of integers, or of floating-point numbers that are all whole and small enough for
// their type to tell them apart. Throws InputError otherwise; its message begins with `from`, which
// for a data set is "<file>: <name>".
std::vector<std::int64_t> whole_numbers(const StoredArray& array, const std::string& from);
std::vector<std::int64_t> whole_numbers(const Hdf5Reader& file, const std::string& name);

// The same for what stands beside rows, as cameras do: one number for each of `rows`, also as a
// matrix of one column or row.
std::vector<std::int64_t> whole_number_of_each(const StoredArray& array, std::int64_t rows,
                                               const std::string& from);

// Throws InputError if /labels holds names: they are taken only if `labels_flag` names the file.
void refuse_named_labels(const Hdf5Reader& file, const std::string& labels_flag);

const RowValue& label_value();
const RowValue& camera_value();

// Throws InputError if the number of labels differs from the number of rows, or if floating-point
// labels are not whole numbers; its message begins with `from` ("y.npy", "e.npz: 'labels'") and
// ends with `rows_of`.
Labels labels_of(const StoredArray& array, std::int64_t rows, std::int64_t dim,
                 const std::string& from, const std::string& rows_of);

// Reads labels from a separate file, FILE or FILE:NAME: an array, /labels of HDF5, or a column of a
// table (retrieval/files/text_column.h).
Labels read_labels(const std::string& from, std::int64_t rows, std::int64_t dim,
                   const std::string& rows_of);

// The same of cameras, which are whole numbers: names of two files cannot be numbered alike.
struct Cameras {
  std::vector<std::int64_t> cameras;
  std::string what;  // "int64", "column camid, whole numbers"
};
Cameras read_cameras(const std::string& from, std::int64_t rows, std::int64_t dim,
                     const std::string& rows_of);

}  // namespace rk
