#include "tools/eval/inputs/file_options.h"

#include "engine/base/english.h"
#include "engine/base/note.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/read_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rk {
namespace {

// Describes the file and how it was read.
std::string reading_text(const RowsRead& read, bool normalize) {
  std::string text = read.format;
  for (const std::string& more : {read.array, read.dtype}) {
    if (!more.empty()) text += " " + more;
  }
  text += fmt::format(" [{}, {}]", read.set.count(), read.set.dim);
  if (read.column_major) text += " in Fortran order, turned";
  text += normalize ? ", normalised" : ", taken as they are";
  text += "; labels: " + read.labels;
  return read.cameras.empty() ? text : text + "; cameras: " + read.cameras;
}

std::int64_t count_below_zero(const EmbeddingSet& set) {
  return std::ranges::count_if(set.labels, [](std::int64_t label) { return label < 0; });
}

DescribedRows read_described(const RowsToRead& what) {
  RowsRead read = read_rows(what);
  DescribedRows rows;
  rows.name = what.embeddings;
  rows.labels_in = what.labels.empty() ? what.embeddings : what.labels;
  rows.text =
      fmt::format("{}: {} of {} ({})", what.embeddings, counted(read.set.count(), "row"),
                  counted(count_classes(read.set), "class"), reading_text(read, what.normalize));
  rows.normalized = what.normalize;
  rows.facts = {{"format", read.format},
                {"dim", read.set.dim},
                {"labels", read.labels},
                {"normalize", what.normalize}};
  if (!read.array.empty()) rows.facts["array"] = read.array;
  if (!read.dtype.empty()) rows.facts["dtype"] = read.dtype;
  if (!read.cameras.empty()) rows.facts["cameras"] = read.cameras;
  if (read.zero_rows > 0) {
    rows.notes.push_back(fmt::format(
        "{}: {} of zeros alone (in float32), which have no direction: they score 0 with all",
        what.embeddings, counted(read.zero_rows, "row")));
    note(rows.notes.back());
  }
  if (const std::int64_t below = count_below_zero(read.set); below > 0) {
    note(rows.notes.emplace_back(
        fmt::format("{}: {} of {} below 0, which are classes as others are; leave out what is junk",
                    rows.labels_in, counted(below, "row"), below == 1 ? "a label" : "labels")));
  }
  rows.set = std::move(read.set);
  return rows;
}

}  // namespace

void FileOptions::add_to(Flags& flags) {
  flags
      .add("--embeddings", embeddings,
           "rows to measure: HDF5 with /embeddings and /labels, .npy, .npz or safetensors "
           "(float16, 32 or 64, in safetensors also bfloat16; [N, D]); FILE:NAME takes the array "
           "NAME, else the one called embeddings, features, x or arr_0, or the only matrix there "
           "is")
      .type_name("FILE");
  flags
      .add("--labels", labels,
           "their classes, one a row: .npy, .npz, safetensors, HDF5 or CSV; numbers or "
           "names; FILE:NAME takes the array or column NAME, else the one called labels, "
           "label, targets, class, y or arr_1, or the only one there is; with --compare, of both "
           "files")
      .type_name("FILE");
  flags
      .add(
          "--cameras", cameras,
          "in the same way, the camera of each row, as a whole number: a query's candidates of its "
          "own class and camera are removed; without it, an array beside the embeddings called "
          "cameras, camids or the like")
      .type_name("FILE");
  const Flag searched = flags.add(
      "--gallery", galleries,
      "search in this file instead of among the embeddings themselves; with --compare two "
      "files, A's and B's");
  // One too many is refused, not ignored.
  searched.type_name("FILE").default_text("").expected(1, 1000);
  flags.add("--gallery-labels", gallery_labels, "as --labels, of --gallery")
      .type_name("FILE")
      .needs(searched);
  flags.add("--gallery-cameras", gallery_cameras, "as --cameras, of --gallery")
      .type_name("FILE")
      .needs(searched);
  flags.add_switch("--normalize", normalize,
                   "divide each row of these files by its length: scores are then cosines");
}

std::vector<std::string> FileOptions::files() const {
  std::vector<std::string> out;
  for (const std::string& each : {embeddings, labels, cameras, gallery_labels, gallery_cameras}) {
    if (!each.empty()) out.push_back(file_and_name(each).file);
  }
  for (const std::string& each : galleries) out.push_back(file_and_name(each).file);
  return out;
}

RowFiles FileOptions::of(const std::string& rows, std::size_t which) const {
  const std::string gallery = galleries.empty() ? "" : galleries.at(which);
  return {rows, labels, cameras, gallery, gallery_labels, gallery_cameras, normalize};
}

DescribedRows read_queries(const RowFiles& files) {
  return read_described({.embeddings = files.embeddings,
                         .labels = files.labels,
                         .normalize = files.normalize,
                         .cameras = files.cameras});
}

DescribedRows read_gallery(const RowFiles& files) {
  return read_described({.embeddings = files.gallery,
                         .labels = files.gallery_labels,
                         .normalize = files.normalize,
                         .labels_flag = "--gallery-labels",
                         .bytes_a_row = RowsToRead::kSearchedBytes,
                         .cameras = files.gallery_cameras});
}

void match_gallery(const DescribedRows& queries, DescribedRows& gallery) {
  check_same_space(queries.set, queries.name, gallery.set, gallery.name);
  check_same_labels(queries.set, queries.labels_in, gallery.set, gallery.labels_in);
  match_classes(queries.set, gallery.set);
}

}  // namespace rk
