#include "tools/eval/inputs/described_rows.h"

#include "engine/base/english.h"
#include "engine/base/integers.h"
#include "engine/base/note.h"
#include "engine/base/text_of.h"
#include "retrieval/files/array_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

// Counts the queries that are also in the gallery, of the same class: by path if both sets have
// paths, otherwise by equal numbers. A copy under another label flatters nothing. With cameras the
// count is 0, since rows of the same class and camera are no candidates.
std::int64_t count_found_again(const EmbeddingSet& queries, const EmbeddingSet& gallery) {
  if (!queries.cameras.empty() && !gallery.cameras.empty()) return 0;
  const bool by_path = !queries.paths.empty() && !gallery.paths.empty();
  const auto paths_of = [&](const EmbeddingSet& set) {
    std::vector<std::string> paths;
    for (std::int64_t i = 0; by_path && i < set.count(); ++i) {
      paths.push_back(recorded_path(set, i));
    }
    return paths;
  };
  const std::vector<std::string> of_queries = paths_of(queries), of_gallery = paths_of(gallery);
  using Picture = std::pair<std::int64_t, std::string_view>;  // the label, and what tells it
  const auto what_is = [&](const EmbeddingSet& set, const std::vector<std::string>& paths,
                           std::int64_t row) -> Picture {
    const std::int64_t label = set.labels[at(row)];
    if (by_path) return {label, paths[at(row)]};
    const std::span<const std::byte> bytes = std::as_bytes(set.values().subspan(
        static_cast<std::size_t>(row * set.dim), static_cast<std::size_t>(set.dim)));
    return {label, text_of(bytes)};
  };
  const auto hash = [](const Picture& picture) {
    return std::hash<std::string_view>()(picture.second) ^ std::hash<std::int64_t>()(picture.first);
  };
  // Queries not found yet.
  std::unordered_map<Picture, std::int64_t, decltype(hash)> missing(0, hash);
  for (std::int64_t i = 0; i < queries.count(); ++i) ++missing[what_is(queries, of_queries, i)];
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < gallery.count(); ++i) {
    const auto met = missing.find(what_is(gallery, of_gallery, i));
    if (met != missing.end()) count += std::exchange(met->second, 0);
  }
  return count;
}

}  // namespace

std::int64_t count_classes(const EmbeddingSet& set) {
  return static_cast<std::int64_t>(
      std::set<std::int64_t>(set.labels.begin(), set.labels.end()).size());
}

std::int64_t count_shared_classes(const EmbeddingSet& a, const EmbeddingSet& b) {
  const std::set<std::int64_t> first(a.labels.begin(), a.labels.end());
  const std::set<std::int64_t> second(b.labels.begin(), b.labels.end());
  return std::count_if(second.begin(), second.end(),
                       [&](std::int64_t label) { return first.contains(label); });
}

std::string recorded_path(const EmbeddingSet& set, std::int64_t row) {
  std::error_code gone;  // the folder that the program runs in
  const fs::path from = set.paths_from.empty() ? fs::current_path(gone) : fs::path(set.paths_from);
  return (from / set.paths[at(row)]).lexically_normal().string();
}

std::string picture_path(const DescribedRows& rows, std::int64_t row) {
  const std::string& path = rows.set.paths[at(row)];
  const std::string& from = rows.set.paths_from;
  std::error_code ignored;
  const bool from_here = from.empty() || from == fs::current_path(ignored);
  std::string recorded = from_here ? path : recorded_path(rows.set, row);
  if (!from.empty() && fs::exists(recorded, ignored)) return recorded;
  const fs::path file = file_and_name(rows.name).file;
  for (const fs::path& place : {file.parent_path() / path, fs::path(path)}) {
    if (fs::exists(place, ignored)) return place.string();
  }
  return recorded;
}

RowsDescription describe(const EvaluatedRows& rows) {
  const DescribedRows& queries = rows.queries;
  RowsDescription out{
      .text = queries.text, .gallery = {}, .facts = queries.facts, .notes = queries.notes};
  if (!queries.provenance.empty()) out.text += "; " + queries.provenance;
  const std::int64_t classes = count_classes(queries.set);
  out.facts["classes"] = classes;
  if (!rows.gallery) return out;
  const DescribedRows& gallery = *rows.gallery;
  std::ranges::copy_if(gallery.notes, std::back_inserter(out.notes), [&](const std::string& text) {
    return std::ranges::count(queries.notes, text) == 0;  // of two splits of the same data
  });
  out.facts["gallery_classes"] = count_classes(gallery.set);
  const std::int64_t shared = count_shared_classes(queries.set, gallery.set);
  const char* matched_by = gallery.set.classes.empty() ? "label" : "name";
  out.facts["shared_classes"] = shared;
  out.facts["classes_matched_by"] = matched_by;
  out.gallery = fmt::format("; in {}, {} of the {} searched for among them (by {})", gallery.text,
                            shared, classes, matched_by);
  out.text += out.gallery;
  std::error_code ignored;
  if (queries.set.cameras.empty() && queries.part == gallery.part &&
      std::filesystem::equivalent(queries.name, gallery.name, ignored)) {
    out.notes.push_back(
        fmt::format("{}: is both queries and gallery, so that every row finds itself; leave "
                    "--gallery out to search among the others",
                    gallery.name));
  } else if (const std::int64_t again = count_found_again(queries.set, gallery.set); again > 0) {
    out.notes.push_back(fmt::format(
        "{} of the {} in {} {} in {} too and {} {}, which flatters every figure; give queries that "
        "the gallery does not hold{}",
        again, counted(queries.count(), "row"), queries.name, again == 1 ? "is" : "are",
        gallery.name, again == 1 ? "finds" : "find", again == 1 ? "itself" : "themselves",
        queries.part.empty() ? ", or number the pictures in /cameras of both files"
                             : " (--split query)"));
  }
  const std::string &turned = queries.set.exif, &others = gallery.set.exif;
  if (!turned.empty() && !others.empty() && turned != others) {
    out.notes.push_back(
        fmt::format("{}: its pictures were embedded with exif={}, those of {} with exif={}; embed "
                    "both alike",
                    gallery.name, others, queries.name, turned));
  }
  for (const std::string& text : out.notes) note(text);
  return out;
}

}  // namespace rk
