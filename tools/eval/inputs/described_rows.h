// The queries or the gallery of eval, with their description for people and for scripts.
#pragma once

#include "data/images/image.h"
#include "engine/base/error.h"
#include "retrieval/passes/embedding_set.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rk {

struct DescribedRows {
  EmbeddingSet set;
  std::string name;        // the file or data as given; begins messages
  std::string labels_in;   // what holds the labels, as given
  std::string text;        // "e.h5: 24 rows of 6 classes"
  std::string provenance;  // "the network was trained on none of these classes"; empty: not known
  std::string part;        // of a data set: "split test"; empty: from a file
  std::vector<std::string> notes;       // what figures of these rows must be read with
  std::vector<std::string> categories;  // names of set.categories' numbers; empty: not known
  bool normalized = false;              // by --normalize
  std::int64_t skipped_images = 0;      // by --skip-bad
  std::function<Image(std::int64_t row)> picture;   // if embedded from pictures
  nlohmann::json facts = nlohmann::json::object();  // only for the JSON, beside the metrics

  std::int64_t count() const { return set.count(); }
  EmbeddingView view() const { return set.view(); }
};

struct EvaluatedRows {
  DescribedRows queries;
  std::optional<DescribedRows> gallery;  // none: the queries are searched among themselves

  // The candidates of a query, but for those that a camera rule removes.
  std::int64_t candidates() const { return gallery ? gallery->count() : queries.count() - 1; }
  std::int64_t skipped_images() const {
    return queries.skipped_images + (gallery ? gallery->skipped_images : 0);
  }
};

// Calls f(queries, gallery) with their views, `gallery` null if there is none, and prefixes its
// InputErrors with the name of the rows that they are about.
template <class F> auto with_views(const EvaluatedRows& rows, F&& f) {
  std::optional<EmbeddingView> gallery;
  if (rows.gallery) gallery = rows.gallery->view();
  try {
    return f(rows.queries.view(), gallery ? &*gallery : nullptr);
  } catch (const InputError& error) {
    const std::string text = error.what();
    fail<InputError>("{}: {}",
                     text.starts_with("gallery:") ? rows.gallery->name : rows.queries.name, text);
  }
}

// The path of a row's picture, which the row must have, as it can be used from here. A path in a
// file is relative to the folder in which the program ran that wrote it. If the picture is not
// there, or the file does not say, it is looked for from the file's own folder, then from here.
std::string picture_path(const DescribedRows& rows, std::int64_t row);

// Where a row's picture was when it was embedded, as an absolute path; taken to be from here if the
// file does not say.
std::string recorded_path(const EmbeddingSet& set, std::int64_t row);

// The number of classes that occur.
std::int64_t count_classes(const EmbeddingSet& set);
// The number of those that occur in both sets.
std::int64_t count_shared_classes(const EmbeddingSet& a, const EmbeddingSet& b);

struct RowsDescription {
  std::string text;                // one line, of queries and gallery
  std::string gallery;             // what of it follows the queries; empty: no gallery
  nlohmann::json facts;            // the counts, and the queries' facts
  std::vector<std::string> notes;  // what the figures must be read with
};

// Prints the notes, too.
RowsDescription describe(const EvaluatedRows& rows);

}  // namespace rk
