// What all rows of a batch share, and what a team does with one row, on either device. A row that
// does not count has loss, gradient and stats 0.
#pragma once

#include "kernels/rows/gallery_row.h"

#include <cstdint>

namespace rk {

template <class S> struct RowBatch {
  S* scores = nullptr;      // [rows, stride], overwritten by dLoss/ds
  std::int64_t stride = 0;  // pad(columns) or more
  int rows = 0;
  int columns = 0;
  const std::int32_t* classes = nullptr;        // [columns], equal for equal labels
  const std::int32_t* members = nullptr;        // [columns], by class, ascending within
  const std::int32_t* first_members = nullptr;  // [rows], offset of the query's class in `members`
  const std::int32_t* member_counts = nullptr;  // [rows], length of the query's class there
  const std::int64_t* image_ids = nullptr;      // [columns], or null
  const std::uint8_t* counted = nullptr;        // [rows], 0: the row does not count
  const S* weight = nullptr;                    // [1], dLoss/d(loss of a row)
  S* losses = nullptr;                          // [rows]

  // The row's gradient overwrites its scores. The caller reads `weight` once for all its rows.
  RK_FN RK_INLINE GalleryRow<S> row(int query, S row_weight) const {
    GalleryRow<S> in;
    in.scores = scores + query * stride;
    in.columns = columns;
    in.classes = classes;
    in.members = members + first_members[query];
    in.member_count = member_counts[query];
    in.image_ids = image_ids;
    in.self = query;
    in.weight = row_weight;
    return in;
  }
};

// Row::measure of row `in.self`: stats [rows, width].
template <class Row, class Team, class S>
RK_FN RK_INLINE void measure_row(const Team& team, const RowBatch<S>& batch,
                                 const typename Row::Params& params, const GalleryRow<S>& in,
                                 S* stats, int width, void* memory) {
  S* own = stats + static_cast<std::int64_t>(in.self) * width;
  if (batch.counted[in.self] == 0) {
    team.for_each(width, [&](int k) { own[k] = 0; });
    return;
  }
  Row::measure(team, params, in, own, memory);
}

// Row::row of row `in.self`: overwrites its scores with the gradient and writes its loss.
template <class Row, class Team, class S>
RK_FN RK_INLINE void run_row(const Team& team, const RowBatch<S>& batch,
                             const typename Row::Params& params, const GalleryRow<S>& in,
                             void* memory) {
  S* grad = batch.scores + in.self * batch.stride;
  S* loss = batch.losses + in.self;
  if (batch.counted[in.self] == 0) {
    team.for_each(pad(in.columns), [&](int k) { grad[k] = 0; });
    team.for_each(1, [&](int) { *loss = 0; });
    return;
  }
  Row::row(team, params, in, grad, loss, memory);
}

}  // namespace rk
