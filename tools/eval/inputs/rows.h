// Rows that eval searches for or in, with what is said of them to people and to scripts.
#pragma once

#include "data/images/image.h"
#include "engine/base/error.h"
#include "retrieval/passes/embedding_set.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace rk {

struct Rows {
  EmbeddingSet set;
  std::string name;  // the file, or the data as they were given: messages begin with it
  std::string text;  // "e.h5: 24 rows of 6 classes"
  std::string part;  // of a data set: "split test"; empty: of a file
  std::function<Image(std::int64_t row)> picture;   // where pictures were embedded; InputError
  nlohmann::json facts = nlohmann::json::object();  // stand in the JSON beside the metrics

  std::int64_t count() const { return set.count(); }
  EmbeddingView view() const { return set.view(); }
};

// f(), whose InputErrors begin with the name of those rows that they are about.
template <class F> auto naming_rows(const Rows& queries, const Rows* gallery, F&& f) {
  try {
    return f();
  } catch (const InputError& error) {
    const std::string text = error.what();
    fail<InputError>("{}: {}", text.starts_with("gallery:") ? gallery->name : queries.name, text);
  }
}

// Where a row's picture is: /paths of a file are relative to the folder in which the program that
// wrote it was called, which is taken to be the present one, or else the file's. The row must have
// a path.
std::string picture_path(const Rows& rows, std::int64_t row);

// How many classes occur.
std::int64_t count_classes(const EmbeddingSet& set);

// What is searched for in what, a line each; `json` takes what is counted for it. `gallery`: null
// where rows are searched for among themselves.
std::string describe(const Rows& queries, const Rows* gallery, nlohmann::json& json);

}  // namespace rk
