// Embeddings in HDF5: /embeddings float32 [N, D], /labels int64 [N]; optional /cameras int64 [N],
// or by another of usual_camera_names(), /categories int64 [N], /paths strings [N], /classes
// strings [C] (then a label is a position in it), /network one string. Further objects in the file
// are ignored. Attributes of the root are written_by (weights/written_by.h) and, with /network,
// exif: "turn" or "ignore".
//
// Errors are InputErrors that name the file: not HDF5, a data set missing or of another type or
// length, no rows, no columns, a non-finite value (its row is named).
#pragma once

#include "retrieval/passes/embedding_set.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rk {

EmbeddingSet read_embeddings(const std::string& path);

// The same from data sets with other names in the same file: prefix "gallery_" reads
// /gallery_embeddings, /gallery_labels and so on.
class Hdf5Reader;
EmbeddingSet read_embeddings(const Hdf5Reader& file, const std::string& prefix = "");

// Reads another data set of the file as embeddings, and nothing else.
EmbeddingSet read_matrix(const Hdf5Reader& file, const std::string& name);

// Usual names of arrays of cameras, in lower case.
std::span<const std::string> usual_camera_names();
// The data set of cameras: "/cameras"; empty: there is none.
std::string cameras_in(const Hdf5Reader& file, const std::string& prefix = "");

// Reads the optional cameras, /categories and /paths.
void read_columns(const Hdf5Reader& file, const std::string& prefix, std::int64_t rows,
                  EmbeddingSet& set);
// Reads the optional /classes, which name `labels`. Throws InputError if one has no name, or if two
// classes share one.
std::vector<std::string> read_classes(const Hdf5Reader& file, const std::string& prefix,
                                      std::span<const std::int64_t> labels);
// Reads the optional /network, which embedded /embeddings, and exif.
void read_network(const Hdf5Reader& file, const std::string& prefix, EmbeddingSet& set);

// Throws InputError "<file>: <name> holds ..." naming the rows that are not finite. The set may not
// have labels yet if its rows are not mapped.
void check_finite(const EmbeddingSet& set, const std::string& file, const std::string& name);

// Replaces `path` atomically; leaves out data sets that `set` does not have. Throws InputError if a
// name holds a NUL, where HDF5 would end it.
void write_embeddings(const std::string& path, const EmbeddingSet& set);

// Throws InputError naming both files if one of them alone has cameras.
void check_same_cameras(const EmbeddingSet& a, const std::string& a_path, const EmbeddingSet& b,
                        const std::string& b_path);
// Throws InputError naming both files if `gallery` cannot be searched for `queries`: another
// dimension or network, or cameras on one side only.
void check_same_space(const EmbeddingSet& queries, const std::string& queries_path,
                      const EmbeddingSet& gallery, const std::string& gallery_path);
// The same if classes have names on one side only; the files are those of the labels.
void check_same_labels(const EmbeddingSet& queries, const std::string& queries_path,
                       const EmbeddingSet& gallery, const std::string& gallery_path);

// If both name their classes: relabels the gallery's rows with the queries' labels for classes of
// the same names, and with new labels for classes that only the gallery has. Both must have passed
// check_same_labels().
void match_classes(const EmbeddingSet& queries, EmbeddingSet& gallery);

}  // namespace rk
