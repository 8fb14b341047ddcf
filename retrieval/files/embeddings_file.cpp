#include "retrieval/files/embeddings_file.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/shape.h"
#include "retrieval/files/labels.h"
#include "retrieval/files/mapped_file.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/contents.h"
#include "weights/hdf5/file.h"
#include "weights/written_by.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace rk {
namespace {

using Kind = Hdf5Reader::Kind;

constexpr const char* kExif = "exif";
constexpr const char* kPathsFrom = "paths_from";

// Explains what is wrong with a data set whose shape is not one value per row.
std::string shape_problem(const std::vector<std::int64_t>& dims, std::int64_t rows) {
  if (dims == std::vector<std::int64_t>{rows, 1} || dims == std::vector<std::int64_t>{1, rows}) {
    return fmt::format("is [{}, {}]; store it flat, [{}] (numpy: .ravel())", dims[0], dims[1],
                       rows);
  }
  return fmt::format(
      "has the shape {}, not one value for each of the {} of the embeddings; "
      "store one value a row",
      shape_text(dims), counted(rows, "row"));
}

void require(const Hdf5Reader& file, const std::string& name, Kind kind, const char* kind_text,
             const std::vector<std::int64_t>& dims) {
  if (!file.has(name)) {
    fail<InputError>("{}: no data set {}; store {} there; {}", file.name(), name, kind_text,
                     what_it_holds(file));
  }
  const Hdf5Reader::Info info = file.info(name);
  if (info.kind != kind) {
    fail<InputError>("{}: {} does not hold {}; convert it", file.name(), name, kind_text);
  }
  if (info.dims != dims) {
    fail<InputError>("{}: {} {}", file.name(), name, shape_problem(info.dims, dims[0]));
  }
}

std::vector<std::int64_t> read_integers(const Hdf5Reader& file, const std::string& name,
                                        std::int64_t count) {
  require(file, name, Kind::kInteger, "integers", {count});
  return file.read<std::int64_t>(name);
}

Hdf5Reader::Info matrix_info(const Hdf5Reader& file, const std::string& name) {
  if (!file.has(name)) {
    if (file.has("/weights")) {
      fail<InputError>(
          "{}: is a network's weights, not embeddings; `eval --checkpoint FILE --data SPEC "
          "--save-embeddings FILE` makes some",
          file.name());
    }
    fail<InputError>("{}: no data set {}; store float32 [N, D] there, or name it as FILE:NAME; {}",
                     file.name(), name, what_it_holds(file));
  }
  Hdf5Reader::Info info = file.info(name);
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
  return info;
}

}  // namespace

void check_finite(const EmbeddingSet& set, const std::string& file, const std::string& name) {
  const std::span<const float> values =
      set.mapped ? set.values() : std::span<const float>(set.embeddings);
  const auto dim = static_cast<std::size_t>(set.dim);
  constexpr std::size_t kNamed = 5;
  std::vector<std::size_t> rows;
  float first = 0;
  std::size_t more = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += dim) {
    const std::span<const float> row = values.subspan(begin, dim);
    const auto bad =
        std::find_if(row.begin(), row.end(), [](float x) { return !std::isfinite(x); });
    if (bad == row.end()) continue;
    if (rows.empty()) first = *bad;
    if (rows.size() < kNamed) {
      rows.push_back(begin / dim);
    } else {
      ++more;
    }
  }
  if (rows.empty()) return;
  const bool one = rows.size() == 1;
  fail<InputError>("{}: {}{}holds {} in row{} {}{}; embed {} again or remove {}", file, name,
                   name.empty() ? "" : " ",
                   std::isnan(first) ? "not-a-number" : "infinity, or a number beyond float32,",
                   one ? "" : "s", fmt::join(rows, ", "),
                   more > 0 ? fmt::format(" and {} more", more) : "",
                   one ? "that image" : "those images", one ? "the row" : "the rows");
}

std::span<const std::string> usual_camera_names() {
  static const std::vector<std::string> names = {"cameras",   "camera",   "camera_ids", "camera_id",
                                                 "cameraids", "cameraid", "camids",     "camid",
                                                 "cam_ids",   "cam_id",   "cams",       "cam"};
  return names;
}

std::string cameras_in(const Hdf5Reader& file, const std::string& prefix) {
  for (const std::string& name : usual_camera_names()) {
    const std::string dataset = "/" + prefix + name;
    if (file.has(dataset)) return dataset;
  }
  return "";
}

void read_columns(const Hdf5Reader& file, const std::string& prefix, std::int64_t rows,
                  EmbeddingSet& set) {
  if (const std::string cameras = cameras_in(file, prefix); !cameras.empty()) {
    const bool real = file.info(cameras).kind == Kind::kFloat;
    require(file, cameras, real ? Kind::kFloat : Kind::kInteger, "integers", {rows});
    set.cameras = whole_numbers(file, cameras);
  }
  const std::string categories = "/" + prefix + "categories";
  if (file.has(categories)) set.categories = read_integers(file, categories, rows);
  const std::string paths = "/" + prefix + "paths";
  if (file.has(paths)) {
    require(file, paths, Kind::kText, "strings", {rows});
    set.paths = file.read_text(paths);
    if (prefix.empty()) set.paths_from = file.text_attribute("/", kPathsFrom).value_or("");
  }
}

std::vector<std::string> read_classes(const Hdf5Reader& file, const std::string& prefix,
                                      std::span<const std::int64_t> labels) {
  const std::string name = "/" + prefix + "classes";
  if (!file.has(name)) return {};
  require(file, name, Kind::kText, "strings", file.info(name).dims);
  std::vector<std::string> classes = file.read_text(name);
  const auto count = static_cast<std::int64_t>(classes.size());
  for (const std::int64_t label : labels) {
    if (label >= 0 && label < count) continue;
    fail<InputError>("{}: label {} has no name among the {} of {}; name every class, or none",
                     file.name(), label, count, name);
  }
  std::unordered_set<std::string> seen;
  for (const std::string& each : classes) {
    if (seen.insert(each).second) continue;
    fail<InputError>("{}: {} names '{}' twice; give every class a name of its own", file.name(),
                     name, each);
  }
  return classes;
}

void read_network(const Hdf5Reader& file, const std::string& prefix, EmbeddingSet& set) {
  const std::string network = "/" + prefix + "network";
  if (!file.has(network)) return;
  require(file, network, Kind::kText, "one string", {1});
  set.network = file.read_text(network).front();
  const std::string exif = file.text_attribute("/", kExif).value_or("");
  if (exif == "turn" || exif == "ignore") set.exif = exif;
}

EmbeddingSet read_embeddings(const Hdf5Reader& file, const std::string& prefix) {
  const std::string name = "/" + prefix + "embeddings";
  const Hdf5Reader::Info info = matrix_info(file, name);
  const std::string labels = "/" + prefix + "labels";
  if (file.has(labels) && file.info(labels).dims == std::vector<std::int64_t>{info.dims[1]} &&
      info.dims[0] != info.dims[1]) {
    fail<InputError>(
        "{}: {} is [{}, {}] and {} has {} values: the rows lie across; store them "
        "transposed (numpy: .T)",
        file.name(), name, info.dims[0], info.dims[1], labels, info.dims[1]);
  }
  EmbeddingSet set;
  set.dim = info.dims[1];
  set.labels = read_integers(file, "/" + prefix + "labels", info.dims[0]);
  read_columns(file, prefix, info.dims[0], set);
  set.classes = read_classes(file, prefix, set.labels);
  read_network(file, prefix, set);
  set.embeddings = file.read<float>(name);
  check_finite(set, file.name(), name);
  return set;
}

EmbeddingSet read_matrix(const Hdf5Reader& file, const std::string& name) {
  EmbeddingSet set;
  set.dim = matrix_info(file, name).dims[1];
  set.embeddings = file.read<float>(name);
  check_finite(set, file.name(), name);
  return set;
}

EmbeddingSet read_embeddings(const std::string& path) { return read_embeddings(Hdf5Reader(path)); }

void write_embeddings(const std::string& path, const EmbeddingSet& set) {
  for (const std::vector<std::string>* texts : {&set.classes, &set.paths}) {
    const auto cut = std::ranges::find_if(
        *texts, [](const std::string& text) { return text.find('\0') != std::string::npos; });
    if (cut == texts->end()) continue;
    fail<InputError>("{}: would cut the name {} off at its NUL, as HDF5 does; rename it", path,
                     in_quotes(*cut));
  }
  Hdf5Writer file;
  sign(file);
  file.write("/embeddings", {set.count(), set.dim}, set.values().data());
  file.write("/labels", {set.count()}, set.labels.data());
  if (!set.cameras.empty()) file.write("/cameras", {set.count()}, set.cameras.data());
  if (!set.categories.empty()) file.write("/categories", {set.count()}, set.categories.data());
  if (!set.paths.empty()) file.write_text("/paths", set.paths);
  if (!set.classes.empty()) file.write_text("/classes", set.classes);
  if (!set.network.empty()) file.write_text("/network", {set.network});
  if (!set.exif.empty()) file.set_attribute("/", kExif, set.exif);
  if (!set.paths_from.empty()) file.set_attribute("/", kPathsFrom, set.paths_from);
  const std::vector<std::byte> bytes = file.finish();
  check_mapped_files();  // never writes lost rows as zeros
  write_atomic(path, bytes);
}

void check_same_cameras(const EmbeddingSet& a, const std::string& a_path, const EmbeddingSet& b,
                        const std::string& b_path) {
  if (a.cameras.empty() == b.cameras.empty()) return;
  fail<InputError>("{}: no cameras, but {} has them; give them of both or of none",
                   b.cameras.empty() ? b_path : a_path, b.cameras.empty() ? a_path : b_path);
}

void check_same_space(const EmbeddingSet& queries, const std::string& queries_path,
                      const EmbeddingSet& gallery, const std::string& gallery_path) {
  if (gallery.dim != queries.dim) {
    fail<InputError>("{}: rows of {}, but {} has rows of {}; embed both with one network",
                     gallery_path, counted(gallery.dim, "number"), queries_path, queries.dim);
  }
  check_same_cameras(queries, queries_path, gallery, gallery_path);
  if (!gallery.network.empty() && !queries.network.empty() && gallery.network != queries.network) {
    fail<InputError>(
        "{}: embedded by another network ({:.12}) than {} ({:.12}); embed both with "
        "one checkpoint",
        gallery_path, gallery.network, queries_path, queries.network);
  }
}

void check_same_labels(const EmbeddingSet& queries, const std::string& queries_path,
                       const EmbeddingSet& gallery, const std::string& gallery_path) {
  if (gallery.classes.empty() != queries.classes.empty()) {
    const bool missing_here = gallery.classes.empty();
    fail<InputError>(
        "{}: its labels are numbers, but {} names its classes, and labels of two files are not the "
        "same classes by themselves; give names for both or numbers for both (labels of CSV that "
        "are all digits are numbers; a letter before each makes them names)",
        missing_here ? gallery_path : queries_path, missing_here ? queries_path : gallery_path);
  }
}

void match_classes(const EmbeddingSet& queries, EmbeddingSet& gallery) {
  std::unordered_map<std::string, std::int64_t> label_of;
  for (const std::string& name : queries.classes) {
    label_of.emplace(name, static_cast<std::int64_t>(label_of.size()));
  }
  std::vector<std::int64_t> label;
  for (const std::string& name : gallery.classes) {
    label.push_back(
        label_of.emplace(name, static_cast<std::int64_t>(label_of.size())).first->second);
  }
  if (label.empty()) return;
  for (std::int64_t& own : gallery.labels) own = label[static_cast<std::size_t>(own)];
  // The names in the order of the new labels: the queries' classes first.
  std::vector<std::string> names(label_of.size());
  for (const auto& [name, at] : label_of) names[static_cast<std::size_t>(at)] = name;
  gallery.classes = std::move(names);
}

}  // namespace rk
