#include "retrieval/report/cards.h"

#include "retrieval/report/html.h"

#include <fmt/format.h>

#include <cstddef>

namespace rk {

std::string class_name(const EmbeddingSet& set, std::int64_t label) {
  return name_or_number(set.classes, label, "label ");
}

std::string path_of(const EmbeddingSet& set, std::int64_t row) {
  return name_or_number(set.paths, row, "row ");
}

std::string file_of(const EmbeddingSet& set, std::int64_t row) {
  const std::string path = path_of(set, row);
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

std::string query_item(Thumbnails& pictures, const EmbeddingSet& queries, std::int64_t query,
                       const std::string& alternative) {
  return fmt::format("<li class=\"item asked\">{}<b>query</b><span class=\"clip\">{}</span></li>\n",
                     pictures.element(false, query, alternative),
                     escaped_to_break(file_of(queries, query)));
}

}  // namespace rk
