#include "tools/eval/inputs/rows.h"

#include "engine/base/note.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace rk {
namespace {

// Of the classes that occur in one set, how many do in the other.
std::int64_t count_shared(const EmbeddingSet& a, const EmbeddingSet& b) {
  const std::set<std::int64_t> first(a.labels.begin(), a.labels.end());
  const std::set<std::int64_t> second(b.labels.begin(), b.labels.end());
  return std::count_if(second.begin(), second.end(),
                       [&](std::int64_t label) { return first.contains(label); });
}

}  // namespace

std::int64_t count_classes(const EmbeddingSet& set) {
  return static_cast<std::int64_t>(
      std::set<std::int64_t>(set.labels.begin(), set.labels.end()).size());
}

std::string describe(const Rows& queries, const Rows* gallery, nlohmann::json& json) {
  const std::int64_t classes = count_classes(queries.set);
  json["classes"] = classes;
  json.update(queries.facts);
  if (gallery == nullptr) return queries.text;
  const std::int64_t gallery_classes = count_classes(gallery->set);
  const std::int64_t shared = count_shared(queries.set, gallery->set);
  const char* matched_by = gallery->set.classes.empty() ? "label" : "name";
  json["gallery_classes"] = gallery_classes;
  json["shared_classes"] = shared;
  json["classes_matched_by"] = matched_by;
  std::error_code ignored;
  if (std::filesystem::equivalent(queries.name, gallery->name, ignored)) {
    note(
        fmt::format("{}: is both queries and gallery, so that every row finds itself; leave "
                    "--gallery out to search among the others",
                    gallery->name));
  }
  return fmt::format("{}\nin {}, {} of the {} searched for among them (by {})", queries.text,
                     gallery->text, shared, classes, matched_by);
}

}  // namespace rk
