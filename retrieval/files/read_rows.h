// Embeddings and labels as anybody has them: HDF5 (retrieval/files/embeddings_file.h), .npy, .npz,
// safetensors; labels in the same file or beside it (retrieval/files/labels.h).
//
// Embeddings are float16, bfloat16, float32 or float64 [N, D], in either order; they become
// float32. What lies in a file as float32 in C order is not read but mapped, so that it may be
// larger than memory. Of several arrays the one is taken that is asked for, or that is called so:
// usual_embedding_names(), usual_label_names(); and cameras, categories and paths where they are
// there.
//
// Errors are InputErrors "<file>: <what>; <what to do>": rows that are not finite are named. Rows
// that a file stores in next to nothing are refused where they would take more than it may
// (weights/hdf5/file_memory.h).
#pragma once

#include "retrieval/passes/embedding_set.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct RowsToRead {
  std::string embeddings;  // FILE, or FILE:NAME for an array of it
  std::string labels;      // the same of the labels; empty: in the file of the embeddings
  bool normalize = false;  // divide each row by its length
  std::string labels_flag = "--labels";  // what messages advise where there are no labels
  // Of memory, beside the rows, that whoever asks will take for each.
  std::uint64_t bytes_a_row = kMeasuredBytes;

  // Of rows that are measured: their order, what is counted of each, its results; and of those that
  // are searched in.
  static constexpr std::uint64_t kMeasuredBytes = 256, kSearchedBytes = 64;
};

struct RowsRead {
  EmbeddingSet set;
  std::string format;          // "HDF5", "npy", "npz", "safetensors"
  std::string dtype;           // of the file: "float16"
  std::string labels;          // where from and which: "y.npy, int64"
  bool columns_first = false;  // numpy's Fortran order, which was turned
  std::int64_t zero_rows = 0;  // without direction, which normalising left as they were
};

RowsRead read_rows(const RowsToRead& what);

// What arrays of embeddings are mostly called, in small letters.
std::span<const std::string> usual_embedding_names();

}  // namespace rk
