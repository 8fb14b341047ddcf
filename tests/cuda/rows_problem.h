// A batch for the row kernels: larger than a block, with classes that fit in shared memory and one
// that does not, ties, shared images, memory columns, queries that do not count.
#pragma once

#include "kernels/rows/gallery_row.h"

#include <cstdint>
#include <vector>

namespace rk {

struct RowsProblem {
  static constexpr int kRows = 203;
  static constexpr int kColumns = 405;
  static constexpr std::int64_t kStride = pad(kColumns) + 32;
  static constexpr int kLargeClass = 90;
  static constexpr float kWeight = 0.125F;

  RowsProblem();

  // Row `query` with its scores at `place`, both precisions from the same floats.
  template <class S> GalleryRow<S> row(int query, const S* place) const {
    GalleryRow<S> out;
    const auto at = static_cast<std::size_t>(query);
    out.scores = place;
    out.columns = kColumns;
    out.classes = classes.data();
    out.members = members.data() + first_members[at];
    out.member_count = member_counts[at];
    out.image_ids = image_ids.data();
    out.self = query;
    out.weight = static_cast<S>(kWeight);
    return out;
  }

  std::vector<float> scores;                // [rows, stride]
  std::vector<std::int32_t> classes;        // [pad(columns)]
  std::vector<std::int32_t> members;        // [columns]
  std::vector<std::int32_t> first_members;  // [rows]
  std::vector<std::int32_t> member_counts;  // [rows]
  std::vector<std::int64_t> image_ids;      // [columns]
  std::vector<std::uint8_t> counted;        // [rows]
};

}  // namespace rk
