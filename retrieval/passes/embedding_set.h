// Rows to search in: embeddings [N, D] float32 in C order, labels [N], and optionally cameras [N],
// categories [N] and paths [N] (empty where not known). EmbeddingView is the same without owning
// it; its cameras are nullptr where there are none. Nothing here is normalised.
//
// Where `classes` names classes, a label is a position in it, and means nothing beside another set:
// there the names are compared. `network`: which embedded (weights/checkpoint.h); `exif`: whether
// pictures were turned as their EXIF orientation says, "turn", "ignore" or, where not known, "".
#pragma once

#include <cstddef>
#include <cstdint>
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
  std::vector<float> embeddings;        // empty where they are mapped
  std::shared_ptr<const float> mapped;  // rows in a file (retrieval/files/mapped_file.h)
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> cameras;
  std::vector<std::int64_t> categories;
  std::vector<std::string> paths;
  std::vector<std::string> classes;
  std::string network, exif;

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  // All rows, wherever they lie.
  std::span<const float> values() const {
    return {mapped ? mapped.get() : embeddings.data(), static_cast<std::size_t>(count() * dim)};
  }
  EmbeddingView view() const {
    return {values().data(), labels.data(), cameras.empty() ? nullptr : cameras.data(), count(),
            dim};
  }
};

}  // namespace rk
