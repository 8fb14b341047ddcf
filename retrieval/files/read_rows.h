// Reads embeddings and labels of any program: HDF5 (retrieval/files/embeddings_file.h), .npy, .npz,
// safetensors; labels in the same file or a separate one (retrieval/files/labels.h).
//
// Embeddings are float16, bfloat16, float32 or float64 [N, D], in either order; they become
// float32. Arrays stored as float32 in C order are mapped instead of read, so they may be larger
// than memory. Of several arrays the requested one is used, or one with a usual name
// (usual_embedding_names(), label_value()); cameras (usual_camera_names()), categories and
// paths are read if present.
//
// Errors are InputErrors "<file>: <what>; <what to do>"; non-finite rows are named. Highly
// compressed rows are refused if unpacking them takes more memory than a file of that size may take
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
  std::string labels;      // the same for the labels; empty: in the file of the embeddings
  bool normalize = false;  // divide each row by its length
  std::string labels_flag = "--labels";  // the flag that messages suggest if there are no labels
  // Memory that the caller will take per row, besides the rows themselves.
  std::uint64_t bytes_a_row = kMeasuredBytes;

  // For rows to be evaluated: their order, counts and results; for rows to be searched in.
  static constexpr std::uint64_t kMeasuredBytes = 256, kSearchedBytes = 64;

  std::string cameras = {};  // as labels; empty: in the file of the embeddings, if it has some
};

struct RowsRead {
  EmbeddingSet set;
  std::string format;          // "HDF5", "npy", "npz", "safetensors"
  std::string dtype;           // in the file: "float16"
  std::string array;           // that holds the rows: "'emb'"; empty: the only one of a .npy
  std::string labels;          // their file and type: "y.npy, int64"
  std::string cameras;         // what holds them: "'camids'", "c.npy, int64"; empty: none
  bool column_major = false;   // the file has numpy's Fortran order; the rows were transposed
  std::int64_t zero_rows = 0;  // rows of zeros, which normalising left unchanged
};

RowsRead read_rows(const RowsToRead& what);

// Usual names of arrays of embeddings, in lower case.
std::span<const std::string> usual_embedding_names();

}  // namespace rk
