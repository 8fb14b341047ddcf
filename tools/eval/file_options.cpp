#include "tools/eval/file_options.h"

#include "retrieval/embeddings_file.h"

#include <fmt/format.h>

namespace rk {

void FileOptions::add_to(CLI::App& app) {
  app.add_option("--embeddings", embeddings, "HDF5 file with /embeddings and /labels")
      ->type_name("FILE");
  app.add_option("--gallery", gallery,
                 "search in this file instead of among the embeddings themselves")
      ->type_name("FILE");
}

Rows read_rows(const std::string& path) {
  Rows rows;
  rows.set = read_embeddings(path);
  rows.name = path;
  rows.text = fmt::format("{}: {} of {}", path, plural(rows.count(), "row", "rows"),
                          plural(count_classes(rows.set), "class", "classes"));
  return rows;
}

Rows read_gallery(const FileOptions& options, const Rows& queries) {
  Rows gallery = read_rows(options.gallery);
  check_same_space(queries.set, queries.name, gallery.set, gallery.name);
  match_classes(queries.set, gallery.set);
  return gallery;
}

}  // namespace rk
