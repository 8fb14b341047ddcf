#include "tools/common/loss_file.h"

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/labels.h"
#include "retrieval/files/mapped_file.h"
#include "tools/common/loss_arrays.h"
#include "weights/hdf5/contents.h"
#include "weights/hdf5/file.h"

#include <fmt/format.h>

#include <tuple>
#include <unordered_map>
#include <utility>

namespace rk {
namespace {

template <class T> const T* or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

void require(const Hdf5Reader& file, const std::string& name) {
  if (file.has(name)) return;
  if (file.has("/weights")) {
    fail<InputError>(
        "{}: is a network's weights, not embeddings; `eval --save-embeddings` makes some",
        file.name());
  }
  fail<InputError>("{}: holds no {}; add it ({})", file.name(), name, what_it_holds(file));
}

// (rows, columns) of a data set, which must be a matrix of numbers of at least `least` rows.
std::pair<std::int64_t, std::int64_t> matrix_dims(const Hdf5Reader& file, const std::string& name,
                                                  std::int64_t least = 1) {
  require(file, name);
  const Hdf5Reader::Info info = file.info(name);
  if (info.kind == Hdf5Reader::Kind::kText || info.dims.size() != 2 || info.dims[0] < least ||
      info.dims[1] < 1) {
    fail<InputError>("{}: {} {} is no matrix of numbers [rows, columns]; write it so", file.name(),
                     name, shape_text(info.dims));
  }
  return {info.dims[0], info.dims[1]};
}

void require_shape(const Hdf5Reader& file, const std::string& name,
                   const std::vector<std::int64_t>& dims) {
  require(file, name);
  const std::vector<std::int64_t> there = file.info(name).dims;
  if (there == dims) return;
  fail<InputError>("{}: {} has shape {} where {} is expected; write it so", file.name(), name,
                   shape_text(there), shape_text(dims));
}

// Both allocate only after the reader has accepted the size.
template <class S>
std::vector<S> read(const Hdf5Reader& file, const std::string& name,
                    const std::vector<std::int64_t>& dims) {
  require_shape(file, name, dims);
  return file.read<S>(name);
}
std::vector<std::int64_t> read_whole(const Hdf5Reader& file, const std::string& name,
                                     const std::vector<std::int64_t>& dims) {
  require_shape(file, name, dims);
  return whole_numbers(file, name);
}

// An image must have one class only: otherwise it would be its own negative.
template <class S> void check_image_ids(const LossData<S>& data, const std::string& name) {
  std::unordered_map<std::int64_t, std::int64_t> label_of;
  const auto check = [&](const std::vector<std::int64_t>& image_ids,
                         const std::vector<std::int64_t>& labels, const char* what) {
    for (std::size_t i = 0; i < image_ids.size(); ++i) {
      if (image_ids[i] < 0) {
        fail<InputError>("{}: {} holds {} in row {}; number images from 0", name, what,
                         image_ids[i], i);
      }
      const auto [at, is_new] = label_of.emplace(image_ids[i], labels[i]);
      if (is_new || at->second == labels[i]) continue;
      fail<InputError>(
          "{}: {}: row {} shows image {} with label {}, another row with label {}; give "
          "an image one label",
          name, what, i, image_ids[i], labels[i], at->second);
    }
  };
  check(data.image_ids, data.labels, "/identities");
  check(data.memory_image_ids, data.memory_labels, "/memory_identities");
}

template <class S>
LossData<S> read_hdf5(const FileAndName& place, LossKind kind, const std::string& labels) {
  const Hdf5Reader file(place.file);
  const auto named_or = [&](const char* name) {
    if (place.name.empty()) return std::string(name);
    return (place.name.starts_with('/') ? "" : "/") + place.name;
  };
  LossData<S> data;
  if (kind == LossKind::kScores) {
    const std::string scores = named_or("/scores");
    std::tie(data.rows, data.classes) = matrix_dims(file, scores);
    data.scores = read<S>(file, scores, {data.rows, data.classes});
    matrix_dims(file, "/targets");
    data.targets = targets_of(read_whole(file, "/targets", {data.rows, data.classes}),
                              file.name() + ": /targets");
    return data;
  }
  const std::string rows = named_or("/embeddings");
  std::tie(data.rows, data.dim) = matrix_dims(file, rows);
  check_batch_rows(data.rows, fmt::format("{}: {}", file.name(), rows));
  data.embeddings = read<S>(file, rows, {data.rows, data.dim});
  if (labels.empty()) {
    refuse_named_labels(file, "--labels");
    data.labels = read_whole(file, "/labels", {data.rows});
  } else {
    Labels given =
        read_labels(labels, data.rows, data.dim, fmt::format("{}: {}", file.name(), rows));
    const bool proxies = kind == LossKind::kProxies;
    if (proxies || file.has("/memory_labels")) {
      refuse_names(given.names, printable(labels), proxies ? "proxies" : "/memory_labels");
    }
    data.labels = std::move(given.labels);
  }
  check_memory_parts(kind, [&](const std::string& name) {
    return file.has("/" + name) ? fmt::format("{}: /{}", file.name(), name) : std::string();
  });
  if (kind == LossKind::kProxies) {
    data.classes = matrix_dims(file, "/proxies").first;
    data.proxies = read<S>(file, "/proxies", {data.classes, data.dim});
    return data;
  }
  if (file.has("/identities")) {
    data.image_ids = read_whole(file, "/identities", {data.rows});
  }
  if (file.has("/memory_embeddings")) {
    data.memory = matrix_dims(file, "/memory_embeddings", 0).first;
    data.memory_embeddings = read<S>(file, "/memory_embeddings", {data.memory, data.dim});
    data.memory_labels = read_whole(file, "/memory_labels", {data.memory});
    if (!data.image_ids.empty()) {
      data.memory_image_ids = read_whole(file, "/memory_identities", {data.memory});
    }
  }
  return data;
}

}  // namespace

template <class S> LossInput<S> LossData<S>::input() const {
  LossInput<S> in;
  in.rows = rows;
  in.dim = dim;
  in.memory = memory;
  in.classes = classes;
  in.embeddings = or_null(embeddings);
  in.labels = or_null(labels);
  in.image_ids = or_null(image_ids);
  in.memory_embeddings = or_null(memory_embeddings);
  in.memory_labels = or_null(memory_labels);
  in.memory_image_ids = or_null(memory_image_ids);
  in.proxies = or_null(proxies);
  in.scores = or_null(scores);
  in.targets = or_null(targets);
  return in;
}

template <class S>
LossData<S> read_loss_file(const std::string& path, LossKind kind, const std::string& labels) {
  const FileAndName place = file_and_name(path);
  LossData<S> data = holds_hdf5(place.file) ? read_hdf5<S>(place, kind, labels)
                                            : read_loss_arrays<S>(path, kind, labels);
  check_image_ids(data, printable(place.file));
  return data;
}

template struct LossData<float>;
template struct LossData<double>;
template LossData<float> read_loss_file(const std::string&, LossKind, const std::string&);
template LossData<double> read_loss_file(const std::string&, LossKind, const std::string&);

}  // namespace rk
