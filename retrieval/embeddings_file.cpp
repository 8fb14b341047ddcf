#include "retrieval/embeddings_file.h"

#include "engine/error.h"
#include "weights/atomic_file.h"
#include "weights/hdf5_file.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

using Kind = Hdf5Reader::Kind;

void require(const Hdf5Reader& file, const std::string& name, Kind kind, const char* kind_text,
             const std::vector<std::int64_t>& dims) {
  if (!file.has(name)) {
    fail<InputError>("{}: no data set {}; store {} there", file.name(), name, kind_text);
  }
  const Hdf5Reader::Info info = file.info(name);
  if (info.kind != kind) {
    fail<InputError>("{}: {} does not hold {}; convert it", file.name(), name, kind_text);
  }
  if (info.dims != dims) {
    fail<InputError>(
        "{}: {} has another length than the {} rows of the embeddings; store one value a row",
        file.name(), name, dims[0]);
  }
}

std::vector<std::int64_t> read_integers(const Hdf5Reader& file, const std::string& name,
                                        std::int64_t count) {
  require(file, name, Kind::kInteger, "integers", {count});
  return file.read<std::int64_t>(name);
}

void check_finite(const EmbeddingSet& set, const std::string& file, const std::string& name) {
  const auto bad = std::find_if(set.embeddings.begin(), set.embeddings.end(),
                                [](float x) { return !std::isfinite(x); });
  if (bad == set.embeddings.end()) return;
  fail<InputError>("{}: {} holds {} in row {}; embed that image again or remove the row", file,
                   name, std::isnan(*bad) ? "not-a-number" : "infinity",
                   (bad - set.embeddings.begin()) / set.dim);
}

}  // namespace

EmbeddingSet read_embeddings(const Hdf5Reader& file, const std::string& prefix) {
  const std::string name = "/" + prefix + "embeddings";
  if (!file.has(name)) {
    fail<InputError>("{}: no data set {}; store float32 [N, D] there", file.name(), name);
  }
  const Hdf5Reader::Info info = file.info(name);
  if (info.kind != Kind::kFloat) {
    fail<InputError>("{}: {} does not hold floating-point numbers; convert it", file.name(), name);
  }
  if (info.dims.size() != 2) {
    fail<InputError>("{}: {} has {} dimensions; store [N, D]", file.name(), name, info.dims.size());
  }
  if (info.dims[0] == 0 || info.dims[1] == 0) {
    fail<InputError>("{}: {} is empty ({} x {}); give at least one row", file.name(), name,
                     info.dims[0], info.dims[1]);
  }
  EmbeddingSet set;
  set.dim = info.dims[1];
  set.labels = read_integers(file, "/" + prefix + "labels", info.dims[0]);
  for (auto [optional, values] :
       {std::pair{"cameras", &set.cameras}, std::pair{"categories", &set.categories}}) {
    const std::string dataset = "/" + prefix + optional;
    if (file.has(dataset)) *values = read_integers(file, dataset, info.dims[0]);
  }
  const std::string paths = "/" + prefix + "paths";
  if (file.has(paths)) {
    require(file, paths, Kind::kText, "strings", {info.dims[0]});
    set.paths = file.read_text(paths);
  }
  set.embeddings = file.read<float>(name);
  check_finite(set, file.name(), name);
  return set;
}

EmbeddingSet read_embeddings(const std::string& path) { return read_embeddings(Hdf5Reader(path)); }

void write_embeddings(const std::string& path, const EmbeddingSet& set) {
  Hdf5Writer file;
  file.write("/embeddings", {set.count(), set.dim}, set.embeddings.data());
  file.write("/labels", {set.count()}, set.labels.data());
  if (!set.cameras.empty()) file.write("/cameras", {set.count()}, set.cameras.data());
  if (!set.categories.empty()) file.write("/categories", {set.count()}, set.categories.data());
  if (!set.paths.empty()) file.write_text("/paths", set.paths);
  write_atomic(path, file.finish());
}

void check_same_space(const EmbeddingSet& queries, const std::string& queries_path,
                      const EmbeddingSet& gallery, const std::string& gallery_path) {
  if (gallery.dim != queries.dim) {
    fail<InputError>("{}: rows of {} numbers, but {} has rows of {}; embed both with one network",
                     gallery_path, gallery.dim, queries_path, queries.dim);
  }
  if (gallery.cameras.empty() != queries.cameras.empty()) {
    const bool missing_here = gallery.cameras.empty();
    fail<InputError>("{}: no /cameras, but {} has them; store them in both files or in none",
                     missing_here ? gallery_path : queries_path,
                     missing_here ? queries_path : gallery_path);
  }
}

}  // namespace rk
