#include "retrieval/report/search_page.h"

#include "engine/base/integers.h"
#include "retrieval/report/cards.h"
#include "retrieval/report/html.h"
#include "retrieval/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>

namespace rk {
namespace {

std::span<const Neighbour> shown_of(const FoundPictures& search, std::int64_t query) {
  const std::span<const Neighbour> all = search.found.of(query);
  return all.first(std::min(all.size(), kMostSearchResults));
}

std::string class_of(const EmbeddingSet& gallery, const Neighbour& found) {
  return class_name(gallery, gallery.labels[at(found.row)]);
}

std::string result_item(const FoundPictures& search, Thumbnails& pictures, std::size_t place,
                        const Neighbour& found) {
  const std::string of = class_of(search.gallery, found);
  return fmt::format(
      "<li class=\"item\">{}<b>{} {}</b><span class=\"clip\" title=\"{}\">{}</span>"
      "<span class=\"under\">{:.4f}</span></li>\n",
      pictures.element(true, found.row, fmt::format("result {} of class {}", place, of)), place,
      escaped_to_break(of), escaped(path_of(search.gallery, found.row)),
      escaped_to_break(file_of(search.gallery, found.row)), found.score);
}

// Found by the query's path, or by a class of its results.
std::string card(const FoundPictures& search, Thumbnails& pictures, std::int64_t query) {
  const std::string path = path_of(search.queries, query);
  std::set<std::string> classes;
  std::string items = query_item(pictures, search.queries, query, "query");
  std::size_t place = 0;
  for (const Neighbour& found : shown_of(search, query)) {
    classes.insert(class_of(search.gallery, found));
    items += result_item(search, pictures, ++place, found);
  }
  std::string find = path;
  for (const std::string& name : classes) find += " " + name;
  return fmt::format(
      "<article class=\"query\" data-find=\"{}\">\n<h3>{}</h3>\n<ul class=\"row\">\n{}</ul>\n"
      "</article>\n",
      escaped(find), escaped(path), items);
}

}  // namespace

std::string search_page(const FoundPictures& search) {
  const std::int64_t queries = search.found.queries();
  const std::int64_t shown = std::min(queries, static_cast<std::int64_t>(kMostSearchQueries));
  std::string out =
      "<p>Each query with what was found for it, best first; the number under a result is its "
      "similarity.</p>\n";
  if (!search.picture) {
    out += fmt::format("<p>There are no pictures to show: {}. Results are named instead.</p>\n",
                       escaped(search.no_pictures));
  }
  out += "<div id=\"browser\">\n";
  Thumbnails pictures(search.picture);
  for (std::int64_t query = 0; query < shown; ++query) out += card(search, pictures, query);
  PageHead head = {search.title, search.data, {}, search.notes};
  if (queries > shown) {
    head.remarks.push_back(fmt::format("Shown are the first {} of {} queries", shown, queries));
  }
  if (search.found.k() > static_cast<std::int64_t>(kMostSearchResults)) {
    head.remarks.push_back(
        fmt::format("Shown are at most {} results of a query", kMostSearchResults));
  }
  return page_of(head, {{"found", "Found", out + "</div>\n"},
                        {"origin", "Where this comes from", facts_list(search.facts)}});
}

}  // namespace rk
