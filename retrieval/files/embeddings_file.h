// Embeddings in HDF5: /embeddings float32 [N, D], /labels int64 [N]; optional /cameras int64 [N],
// /categories int64 [N], /paths strings [N], /classes strings [C] (then a label is a position in
// it), /network one string. Further objects in the file are ignored. Attributes of the root are
// written_by (weights/written_by.h) and, beside /network, exif: "turn" or "ignore".
//
// Errors are InputError naming the file: not HDF5, a data set missing, of another type or length,
// no rows, no columns, a value that is not finite (its row is named).
#pragma once

#include "retrieval/passes/embedding_set.h"

#include <cstddef>
#include <string>
#include <vector>

namespace rk {

EmbeddingSet read_embeddings(const std::string& path);

// The same from data sets with other names in the same file: prefix "gallery_" reads
// /gallery_embeddings, /gallery_labels and so on.
class Hdf5Reader;
EmbeddingSet read_embeddings(const Hdf5Reader& file, const std::string& prefix = "");

// Another data set of the file as embeddings, without anything beside them.
EmbeddingSet read_matrix(const Hdf5Reader& file, const std::string& name);
// What may lie beside it under these names: /cameras, /categories, /paths.
void read_columns(const Hdf5Reader& file, const std::string& prefix, std::int64_t rows,
                  EmbeddingSet& set);

// InputError "<file>: <name> holds ..." that names the rows which are not finite. The set may be
// without labels yet where its rows are not mapped.
void check_finite(const EmbeddingSet& set, const std::string& file, const std::string& name);

// Replaces `path` atomically; data sets that `set` has not got are left out.
void write_embeddings(const std::string& path, const EmbeddingSet& set);

// What is wrong with searching `gallery` for `queries` (another dimension or network, cameras or
// class names on one side only) is an InputError that names both files.
void check_same_space(const EmbeddingSet& queries, const std::string& queries_path,
                      const EmbeddingSet& gallery, const std::string& gallery_path);

// Where both name their classes: gives the gallery's rows the labels that the queries have for the
// classes of these names, and further ones for classes that only the gallery has. Both have passed
// check_same_space().
void match_classes(const EmbeddingSet& queries, EmbeddingSet& gallery);

}  // namespace rk
