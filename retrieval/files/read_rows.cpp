#include "retrieval/files/read_rows.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/system/read_file.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/labels.h"
#include "retrieval/files/mapped_file.h"
#include "weights/hdf5/contents.h"
#include "weights/hdf5/file.h"
#include "weights/hdf5/file_memory.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

namespace rk {
namespace {

const StoredArray& embeddings_in(const ArrayFile& file, const std::string& name) {
  if (!name.empty()) return file.named(name);
  const std::vector<const StoredArray*> all = file.all();
  if (file.format() == "npy") return *all.front();
  if (const StoredArray* usual = file.find(usual_embedding_names())) return *usual;
  const StoredArray* found = nullptr;
  for (const StoredArray* array : all) {
    // Arrays of more than two dimensions mean a network's file, whose matrices are not embeddings.
    if (array->real() && array->dims().size() > 2) {
      found = nullptr;
      break;
    }
    if (!array->real() || array->dims().size() != 2) continue;
    if (found != nullptr) {
      found = nullptr;
      break;
    }
    found = array;
  }
  if (found != nullptr) return *found;
  fail<InputError>("{}: none of its arrays is called embeddings; {}; say which, as FILE:NAME",
                   printable(file.path()), file.contents());
}

void check_embeddings(const StoredArray& array, const std::string& from,
                      const std::string& labels_flag) {
  if (!array.real()) {
    fail<InputError>(
        "{}: is {}, not floating-point numbers; give embeddings [N, D] (numpy: "
        ".astype('float32')), and labels by {}",
        from, text_of(array), labels_flag);
  }
  if (array.dims().size() != 2) {
    fail<InputError>("{}: is {}; give two dimensions, [N, D]", from, text_of(array));
  }
  if (array.dims()[0] == 0 || array.dims()[1] == 0) {
    fail<InputError>("{}: is empty, {}; give at least one row of one number", from, text_of(array));
  }
}

// Maps the values in place if possible, else converts them.
void take_values(const ArrayFile& file, const StoredArray& array, EmbeddingSet& set) {
  const StoredTensor& tensor = array.tensor;
  const bool in_place = tensor.type == ElementType::kF32 && tensor.contiguous() &&
                        !tensor.big_endian && tensor.owner &&
                        reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(float) == 0;
  if (in_place) {
    set.mapped = {tensor.owner, reinterpret_cast<const float*>(tensor.bytes.data())};
    return;
  }
  file.check_memory(static_cast<std::uint64_t>(tensor.elements()) * sizeof(float));
  set.embeddings = rows_as_float32(array);
}

std::vector<std::int64_t> numbers_in(const ArrayFile& file, const StoredArray& array,
                                     std::int64_t rows) {
  return whole_number_of_each(array, rows,
                              fmt::format("{}: {}", printable(file.path()), in_quotes(array.name)));
}

// Reads cameras, categories and paths if present, as in HDF5.
void take_what_is_beside(const ArrayFile& file, RowsRead& out) {
  static const std::vector<std::string> categories = {"categories"};
  static const std::vector<std::string> paths = {"paths", "filenames", "files"};
  EmbeddingSet& set = out.set;
  if (const StoredArray* cameras = file.find(usual_camera_names())) {
    set.cameras = numbers_in(file, *cameras, set.count());
    out.cameras = in_quotes(cameras->name);
  }
  if (const StoredArray* of = file.find(categories)) {
    set.categories = numbers_in(file, *of, set.count());
  }
  const StoredArray* names = file.find(paths);
  if (names == nullptr || !names->text) return;
  if (names->dims() != std::vector<std::int64_t>{set.count()}) {
    fail<InputError>("{}: {} is {}, not one for each of the {}; mend or remove it",
                     printable(file.path()), in_quotes(names->name), text_of(*names),
                     counted(set.count(), "row"));
  }
  for (std::int64_t i = 0; i < set.count(); ++i) set.paths.push_back(text_at(*names, i));
}

RowsRead read_arrays(const RowsToRead& what) {
  const FileAndName place = file_and_name(what.embeddings);
  const ArrayFile file = open_arrays(place.file);
  const StoredArray& array = embeddings_in(file, place.name);
  const std::string shown = printable(place.file);
  const std::string from =
      array.name.empty() ? shown : fmt::format("{}: {}", shown, in_quotes(array.name));
  check_embeddings(array, from, what.labels_flag);
  const std::int64_t rows = array.dims()[0], dim = array.dims()[1];

  RowsRead out;
  out.format = file.format();
  out.dtype = array.dtype;
  if (!array.name.empty()) out.array = in_quotes(array.name);
  out.column_major = array.column_major;
  Labels labels;
  if (!what.labels.empty()) {
    labels = read_labels(what.labels, rows, dim, from);
    out.labels = fmt::format("{}, {}", printable(what.labels), labels.what);
  } else {
    const StoredArray* found = file.find(label_value().usual);
    if (found == nullptr || found == &array) {
      fail<InputError>(
          "{}: no labels in it; give them by {} FILE (.npy, .npz, CSV, ...), one "
          "a row{}",
          shown, what.labels_flag, file.format() == "npy" ? "" : "; " + file.contents());
    }
    labels =
        labels_of(*found, rows, dim, fmt::format("{}: {}", shown, in_quotes(found->name)), from);
    out.labels = fmt::format("{}, {}", in_quotes(found->name), labels.what);
  }
  out.set.dim = dim;
  out.set.labels = std::move(labels.labels);
  out.set.classes = std::move(labels.classes);
  take_what_is_beside(file, out);
  take_values(file, array, out.set);
  check_finite(out.set, shown, array.name.empty() ? "" : in_quotes(array.name));
  check_mapped_files();
  return out;
}

RowsRead read_hdf5(const RowsToRead& what) {
  const FileAndName place = file_and_name(what.embeddings);
  const Hdf5Reader file(place.file);
  RowsRead out;
  out.format = "HDF5";
  if (place.name.empty() && what.labels.empty()) {
    const bool labelled = file.has("/labels");
    if (file.has("/embeddings") && !labelled) {
      fail<InputError>("{}: no data set /labels; give them by {} FILE, or store integers there; {}",
                       file.name(), what.labels_flag, what_it_holds(file));
    }
    refuse_named_labels(file, what.labels_flag);
    if (!labelled || file.info("/labels").kind == Hdf5Reader::Kind::kInteger) {
      out.set = read_embeddings(file);
      out.array = "/embeddings";
      out.labels = "/labels";
      out.cameras = cameras_in(file);
      return out;
    }
  }
  const std::string name = place.name.empty()            ? "/embeddings"
                           : place.name.starts_with('/') ? place.name
                                                         : "/" + place.name;
  out.set = read_matrix(file, name);
  out.array = name;
  const auto rows = static_cast<std::int64_t>(out.set.embeddings.size()) / out.set.dim;
  read_columns(file, "", rows, out.set);
  out.cameras = cameras_in(file);
  // Of another data set nothing says which network made it.
  if (name == "/embeddings") read_network(file, "", out.set);
  Labels labels = read_labels(what.labels.empty() ? place.file : what.labels, rows, out.set.dim,
                              fmt::format("{}: {}", file.name(), name));
  out.labels =
      fmt::format("{}, {}", what.labels.empty() ? "/labels" : printable(what.labels), labels.what);
  out.set.labels = std::move(labels.labels);
  out.set.classes = std::move(labels.classes);
  return out;
}

void check_rows(const RowsToRead& what, std::int64_t rows, std::int64_t dim) {
  const std::string path = file_and_name(what.embeddings).file;
  const std::uint64_t bytes = RegularFile(path, std::numeric_limits<std::int64_t>::max()).bytes();
  const std::uint64_t needed = static_cast<std::uint64_t>(rows) * what.bytes_a_row;
  // Rows that are not compressed take at least this much of the file.
  const std::uint64_t plain =
      static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(dim) * sizeof(std::uint16_t);
  if (plain <= bytes || needed <= memory_for_file(bytes)) return;
  fail<InputError>(
      "{}: its {} rows would take {} MiB to be measured, and {} MiB are the limit for a file of {} "
      "bytes; give fewer, or write them uncompressed",
      printable(path), rows, needed >> 20, memory_for_file(bytes) >> 20, bytes);
}

std::int64_t normalize_rows(EmbeddingSet& set) {
  if (set.mapped) {
    const std::span<const float> values = set.values();
    set.embeddings.assign(values.begin(), values.end());
    set.mapped.reset();
  }
  const auto dim = static_cast<std::size_t>(set.dim);
  std::int64_t zeros = 0;
  for (std::size_t begin = 0; begin < set.embeddings.size(); begin += dim) {
    const std::span<float> row(set.embeddings.data() + begin, dim);
    double squares = 0;
    for (const float x : row) squares += static_cast<double>(x) * static_cast<double>(x);
    const double length = std::sqrt(squares);
    zeros += length == 0 ? 1 : 0;
    for (float& x : row) {
      x = length == 0 ? 0.0F : static_cast<float>(static_cast<double>(x) / length);
    }
  }
  return zeros;
}

}  // namespace

std::span<const std::string> usual_embedding_names() {
  static const std::vector<std::string> names = {"embeddings", "embedding", "embs",  "emb",
                                                 "features",   "feature",   "feats", "feat",
                                                 "vectors",    "x",         "data",  "arr_0"};
  return names;
}

RowsRead read_rows(const RowsToRead& what) {
  RowsRead out =
      holds_hdf5(file_and_name(what.embeddings).file) ? read_hdf5(what) : read_arrays(what);
  EmbeddingSet& set = out.set;
  check_rows(what, set.count(), set.dim);
  if (!what.cameras.empty()) {
    Cameras read = read_cameras(what.cameras, set.count(), set.dim, printable(what.embeddings));
    set.cameras = std::move(read.cameras);
    out.cameras = fmt::format("{}, {}", printable(what.cameras), read.what);
  }
  if (what.normalize) {
    out.zero_rows = normalize_rows(out.set);
    check_mapped_files();
  }
  return out;
}

}  // namespace rk
