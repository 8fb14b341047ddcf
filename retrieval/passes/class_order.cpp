#include "retrieval/passes/class_order.h"

#include "engine/base/integers.h"

#include <algorithm>
#include <unordered_map>

namespace rk {
namespace {

using ClassSizes = std::unordered_map<std::int64_t, std::int64_t>;

std::vector<std::int64_t> sorted_rows(const EmbeddingView& view, const ClassSizes& sizes,
                                      bool by_camera) {
  struct Key {
    std::int64_t size, label, camera, row;
    // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that the compiler compares with
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys(static_cast<std::size_t>(view.count));
  for (std::int64_t i = 0; i < view.count; ++i) {
    const auto found = sizes.find(view.labels[i]);
    keys[at(i)] = {found == sizes.end() ? 0 : found->second, view.labels[i],
                   by_camera ? view.cameras[i] : 0, i};
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::int64_t> rows(keys.size());
  std::transform(keys.begin(), keys.end(), rows.begin(), [](const Key& key) { return key.row; });
  return rows;
}

}  // namespace

ClassOrder make_class_order(const EmbeddingView& queries, const EmbeddingView* gallery) {
  const bool self = gallery == nullptr;
  const EmbeddingView& candidates = self ? queries : *gallery;
  const bool by_camera = queries.cameras != nullptr && candidates.cameras != nullptr;

  ClassSizes sizes;
  for (std::int64_t i = 0; i < candidates.count; ++i) ++sizes[candidates.labels[i]];

  ClassOrder order;
  order.gallery_row = sorted_rows(candidates, sizes, by_camera);
  order.query_row = self ? order.gallery_row : sorted_rows(queries, sizes, by_camera);
  order.queries.resize(order.query_row.size());

  const auto label_at = [&](std::int64_t position) {
    return candidates.labels[order.gallery_row[at(position)]];
  };
  const auto camera_at = [&](std::int64_t position) {
    return candidates.cameras[order.gallery_row[at(position)]];
  };
  // Queries and gallery have the classes in the same order, so one walk over both suffices.
  std::int64_t class_begin = 0, class_end = 0, camera_begin = 0, camera_end = 0;
  for (std::size_t q = 0; q < order.query_row.size(); ++q) {
    const std::int64_t row = order.query_row[q];
    const std::int64_t label = queries.labels[row];
    const auto found = sizes.find(label);
    if (found == sizes.end()) {
      order.queries[q] = {0, 0, 0, 0};
      continue;
    }
    if (class_end == class_begin || label_at(class_begin) != label) {
      // Skips classes of the gallery that no query has.
      class_begin = class_end;
      while (label_at(class_begin) != label) ++class_begin;
      class_end = class_begin + found->second;
      camera_begin = camera_end = class_begin;
    }
    if (by_camera) {
      const std::int64_t camera = queries.cameras[row];
      while (camera_begin < class_end && camera_at(camera_begin) < camera) ++camera_begin;
      camera_end = std::max(camera_end, camera_begin);
      while (camera_end < class_end && camera_at(camera_end) <= camera) ++camera_end;
      order.queries[q] = {class_begin, class_end, camera_begin, camera_end};
    } else if (self) {
      const auto itself = static_cast<std::int64_t>(q);
      order.queries[q] = {class_begin, class_end, itself, itself + 1};
    } else {
      order.queries[q] = {class_begin, class_end, class_begin, class_begin};
    }
  }
  return order;
}

}  // namespace rk
