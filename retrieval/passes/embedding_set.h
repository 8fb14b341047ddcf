// Rows to search in: embeddings [N, D] float32 in C order, labels [N], and optionally cameras [N],
// categories [N] and paths [N] (empty if not known). EmbeddingView does not own the data; its
// cameras are nullptr if there are none. Nothing here is normalised.
//
// If `classes` names classes, a label is a position in it and cannot be compared with another set's
// labels: compare the names. `network`: which network embedded the rows (weights/checkpoint.h);
// `exif`: whether images were turned as their EXIF orientation says: "turn", "ignore" or, if not
// known, "". `paths_from`: the folder that relative paths begin in, "" if not known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct EmbeddingView {
  const float* embeddings = nullptr;      // [count, dim]
  const std::int64_t* labels = nullptr;   // [count]
  const std::int64_t* cameras = nullptr;  // [count] or nullptr
  std::int64_t count = 0;
  std::int64_t dim = 0;
};

struct EmbeddingSet {
  std::int64_t dim = 0;
  std::vector<float> embeddings;        // empty if they are mapped
  std::shared_ptr<const float> mapped;  // rows in a file (retrieval/files/mapped_file.h)
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> cameras;
  std::vector<std::int64_t> categories;
  std::vector<std::string> paths;
  std::vector<std::string> classes;
  std::string network, exif, paths_from;

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  // All rows, mapped or not.
  std::span<const float> values() const {
    return {mapped ? mapped.get() : embeddings.data(), static_cast<std::size_t>(count() * dim)};
  }
  bool finite() const {
    return std::ranges::all_of(values(), [](float x) { return std::isfinite(x); });
  }
  EmbeddingView view() const {
    return {values().data(), labels.data(), cameras.empty() ? nullptr : cameras.data(), count(),
            dim};
  }
};

// The name that stands at a number, of a class, a category or a row; the number itself, behind
// `what`, if none does: "tabby", "7", "label 7".
inline std::string name_or_number(const std::vector<std::string>& names, std::int64_t number,
                                  const char* what = "") {
  const bool named = number >= 0 && number < std::ssize(names);  // -1: of no category
  return named ? names[static_cast<std::size_t>(number)] : what + std::to_string(number);
}

}  // namespace rk
