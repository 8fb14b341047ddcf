#include "tools/inspect/loss_file.h"

#include "engine/base/error.h"
#include "weights/hdf5/contents.h"
#include "weights/hdf5/file.h"

#include <tuple>
#include <utility>

namespace rk {
namespace {

template <class T> const T* or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

void require(const Hdf5Reader& file, const std::string& name) {
  if (file.has(name)) return;
  fail<InputError>("{}: holds no {}; add it ({})", file.name(), name, what_it_holds(file));
}

// Dimensions of a matrix of numbers, (rows, columns).
std::pair<std::int64_t, std::int64_t> matrix_dims(const Hdf5Reader& file, const std::string& name) {
  require(file, name);
  const Hdf5Reader::Info info = file.info(name);
  if (info.kind == Hdf5Reader::Kind::kText || info.dims.size() != 2 || info.dims[1] < 1) {
    fail<InputError>("{}: {} is no matrix of numbers [rows, columns]; write it so", file.name(),
                     name);
  }
  return {info.dims[0], info.dims[1]};
}

template <class S>
void read_matrix(const Hdf5Reader& file, const std::string& name, std::int64_t rows,
                 std::int64_t columns, std::vector<S>& out) {
  out.resize(static_cast<std::size_t>(rows * columns));
  file.read_into(name, {rows, columns}, out.data());
}

std::vector<std::int64_t> read_ids(const Hdf5Reader& file, const std::string& name,
                                   std::int64_t rows) {
  require(file, name);
  std::vector<std::int64_t> out(static_cast<std::size_t>(rows));
  file.read_into(name, {rows}, out.data());
  return out;
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
  in.identities = or_null(identities);
  in.memory_embeddings = or_null(memory_embeddings);
  in.memory_labels = or_null(memory_labels);
  in.memory_identities = or_null(memory_identities);
  in.proxies = or_null(proxies);
  in.scores = or_null(scores);
  in.targets = or_null(targets);
  return in;
}

template <class S> LossData<S> read_loss_file(const std::string& path, LossKind kind) {
  const Hdf5Reader file(path);
  LossData<S> data;
  if (kind == LossKind::kScores) {
    std::tie(data.rows, data.classes) = matrix_dims(file, "/scores");
    read_matrix(file, "/scores", data.rows, data.classes, data.scores);
    matrix_dims(file, "/targets");
    read_matrix(file, "/targets", data.rows, data.classes, data.targets);
    return data;
  }
  std::tie(data.rows, data.dim) = matrix_dims(file, "/embeddings");
  read_matrix(file, "/embeddings", data.rows, data.dim, data.embeddings);
  data.labels = read_ids(file, "/labels", data.rows);
  if (kind == LossKind::kProxies) {
    data.classes = matrix_dims(file, "/proxies").first;
    read_matrix(file, "/proxies", data.classes, data.dim, data.proxies);
    return data;
  }
  if (file.has("/identities")) data.identities = read_ids(file, "/identities", data.rows);
  if (file.has("/memory_embeddings")) {
    data.memory = matrix_dims(file, "/memory_embeddings").first;
    read_matrix(file, "/memory_embeddings", data.memory, data.dim, data.memory_embeddings);
    data.memory_labels = read_ids(file, "/memory_labels", data.memory);
    if (!data.identities.empty()) {
      data.memory_identities = read_ids(file, "/memory_identities", data.memory);
    }
  }
  return data;
}

template struct LossData<float>;
template struct LossData<double>;
template LossData<float> read_loss_file(const std::string&, LossKind);
template LossData<double> read_loss_file(const std::string&, LossKind);

}  // namespace rk
