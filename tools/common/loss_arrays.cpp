#include "tools/common/loss_arrays.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/labels.h"
#include "retrieval/files/mapped_file.h"
#include "retrieval/files/read_rows.h"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>

namespace rk {
namespace {

std::string place_of(const ArrayFile& file, const std::string& name) {
  return fmt::format("{}: {}", printable(file.path()), in_quotes(name));
}

const StoredArray* find(const ArrayFile& file, std::string_view name) {
  const std::string names[] = {std::string(name)};
  return file.find(names);
}

const StoredArray& required(const ArrayFile& file, std::string_view name) {
  if (const StoredArray* found = find(file, name)) return *found;
  if (file.format() == "npy") {
    fail<InputError>(
        "{}: is a single array, and this loss also reads {}; give .npz, safetensors or HDF5 with "
        "all it reads",
        printable(file.path()), name);
  }
  fail<InputError>("{}: holds no {}; add it ({})", printable(file.path()), name, file.contents());
}

// `columns`: how many there must be; 0: any number.
template <class S>
std::vector<S> matrix(const ArrayFile& file, const StoredArray& array, std::int64_t columns) {
  const std::vector<std::int64_t>& dims = array.dims();
  if (!array.real() || dims.size() != 2 || dims[0] < 1 || dims[1] < 1 ||
      (columns > 0 && dims[1] != columns)) {
    fail<InputError>("{} is {} where floating-point numbers [rows, {}] are expected; write it so",
                     place_of(file, array.name), text_of(array),
                     columns > 0 ? std::to_string(columns) : "columns");
  }
  file.check_memory(static_cast<std::uint64_t>(array.tensor.elements()) * sizeof(float));
  const std::vector<float> values = rows_as_float32(array);
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> integers(const ArrayFile& file, const StoredArray& array,
                                   const std::vector<std::int64_t>& dims) {
  const std::string from = place_of(file, array.name);
  if ((!array.integer() && !array.real()) || array.dims() != dims) {
    fail<InputError>("{} is {} where integers {} are expected; write it so", from, text_of(array),
                     shape_text(dims));
  }
  file.check_memory(static_cast<std::uint64_t>(array.tensor.elements()) * sizeof(std::int64_t));
  return whole_numbers(array, from);
}

template <class S>
void take_scores(const ArrayFile& file, const std::string& name, LossData<S>& data) {
  // First, for they are what a single array lacks.
  const StoredArray& targets = required(file, "targets");
  const StoredArray& scores = required(file, name.empty() ? "scores" : std::string_view(name));
  data.scores = matrix<S>(file, scores, 0);
  data.rows = scores.dims()[0];
  data.classes = scores.dims()[1];
  data.targets =
      targets_of(integers(file, targets, {data.rows, data.classes}), place_of(file, targets.name));
}

// Labels of earlier batches are matched with those of `rows`: by name if they are names.
template <class S>
void take_memory(const ArrayFile& file, const EmbeddingSet& rows, LossData<S>& data) {
  const StoredArray* array = find(file, "memory_embeddings");
  if (array == nullptr) return;
  data.memory_embeddings = matrix<S>(file, *array, data.dim);
  data.memory = array->dims()[0];
  const StoredArray& stored = required(file, "memory_labels");
  const std::string from = place_of(file, stored.name);
  Labels labels = labels_of(stored, data.memory, data.dim, from, place_of(file, array->name));
  if (rows.classes.empty()) refuse_names(labels.names, from, "labels");
  if (labels.classes.empty() && !rows.classes.empty()) {
    fail<InputError>("{}: holds numbers, but labels are names; give names", from);
  }
  EmbeddingSet memory;
  memory.labels = std::move(labels.labels);
  memory.classes = std::move(labels.classes);
  match_classes(rows, memory);
  data.memory_labels = std::move(memory.labels);
  if (!data.image_ids.empty()) {
    data.memory_image_ids = integers(file, required(file, "memory_identities"), {data.memory});
  }
}

template <class S>
void take_rows(const ArrayFile& file, const std::string& path, LossKind kind,
               const std::string& labels, LossData<S>& data) {
  RowsRead read = read_rows({.embeddings = path, .labels = labels});
  data.rows = read.set.count();
  data.dim = read.set.dim;
  data.text = fmt::format("{}, {}; labels: {}", read.format, read.dtype, read.labels);
  check_batch_rows(data.rows, printable(path) + ":");
  const std::span<const float> values = read.set.values();
  data.embeddings.assign(values.begin(), values.end());
  data.labels = read.set.labels;
  check_memory_parts(kind, [&](const std::string& name) {
    const StoredArray* found = find(file, name);
    return found == nullptr ? std::string() : place_of(file, found->name);
  });
  if (kind == LossKind::kProxies) {
    refuse_names(!read.set.classes.empty(), fmt::format("{}: labels", printable(path)), "proxies");
    const StoredArray& proxies = required(file, "proxies");
    data.proxies = matrix<S>(file, proxies, data.dim);
    data.classes = proxies.dims()[0];
    return;
  }
  if (const StoredArray* found = find(file, "identities")) {
    data.image_ids = integers(file, *found, {data.rows});
  }
  take_memory(file, read.set, data);
}

}  // namespace

void check_batch_rows(std::int64_t rows, const std::string& from) {
  constexpr std::int64_t kMost = 1 << 16;
  if (rows <= kMost) return;
  fail<InputError>("{} holds {} rows, and a loss compares at most {} with one another; take fewer",
                   from, rows, kMost);
}

void refuse_names(bool names, const std::string& from, const std::string& others) {
  if (!names) return;
  fail<InputError>("{}: holds names, but {} go by number; give numbers", from, others);
}

void check_memory_parts(LossKind kind,
                        const std::function<std::string(const std::string& name)>& place) {
  const std::string memory = place("memory_embeddings"), identities = place("memory_identities");
  if (kind == LossKind::kProxies) {
    if (memory.empty()) return;
    note(fmt::format("{}: not read; a loss with proxies compares the batch with them alone",
                     memory));
    return;
  }
  if (!identities.empty() && place("identities").empty()) {
    fail<InputError>(
        "{}: numbers the pictures of the memory, and nothing numbers those of the batch; add "
        "identities or leave both out",
        identities);
  }
  if (!memory.empty()) return;
  for (const std::string& part : {place("memory_labels"), identities}) {
    if (part.empty()) continue;
    fail<InputError>("{}: is of a memory that is not there; add memory_embeddings or leave it out",
                     part);
  }
}

std::vector<std::uint8_t> targets_of(const std::vector<std::int64_t>& values,
                                     const std::string& from) {
  std::vector<std::uint8_t> targets;
  targets.reserve(values.size());
  for (const std::int64_t value : values) {
    if (value != 0 && value != 1) {
      fail<InputError>("{} holds {}; give 1 for what belongs to a class, 0 for the rest", from,
                       value);
    }
    targets.push_back(static_cast<std::uint8_t>(value));
  }
  return targets;
}

template <class S>
LossData<S> read_loss_arrays(const std::string& path, LossKind kind, const std::string& labels) {
  const FileAndName place = file_and_name(path);
  const ArrayFile file = open_arrays(place.file);
  LossData<S> data;
  if (kind == LossKind::kScores) {
    take_scores(file, place.name, data);
  } else {
    take_rows(file, path, kind, labels, data);
  }
  check_mapped_files();  // while the file is mapped
  return data;
}

template LossData<float> read_loss_arrays(const std::string&, LossKind, const std::string&);
template LossData<double> read_loss_arrays(const std::string&, LossKind, const std::string&);

}  // namespace rk
