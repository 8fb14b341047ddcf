// One query's row as every similarity loss sees it: its scores against all columns (the batch in
// order, then the memory), and which columns are positives, negatives, or none of its gallery.
//   positive: same class, another image (the query itself too where `with_self`: compat=official)
//   negative: another class
//   neither:  the query's own column, and every column that shows the same image
// Arrays over columns are readable up to pad(columns), where they may hold NaN: select, do not
// multiply by 0. An image belongs to one class.
#pragma once

#include "kernels/team.h"

#include <cstdint>

namespace rk {

template <class S> struct GalleryRow {
  const S* scores = nullptr;              // [columns]
  int columns = 0;                        // N + M
  const std::int32_t* classes = nullptr;  // [columns], dense numbers
  const std::int32_t* members = nullptr;  // columns of the query's class, ascending
  int member_count = 0;
  const std::int64_t* image_ids = nullptr;  // [columns], or null: each column is another image
  int self = 0;                             // the query's own column
  S weight = 1;                             // dLoss/d(loss of this row)

  RK_FN bool is_negative(int column) const {
    // Both are evaluated: a load under a condition would become a gather.
    const bool other_class = classes[column] != classes[self];
    return column < columns && other_class;
  }
  RK_FN bool is_positive(int member, bool with_self) const {
    const int column = members[member];
    if (column == self) return with_self;
    return image_ids == nullptr || image_ids[column] != image_ids[self];
  }
  RK_FN int negatives() const { return columns - member_count; }
};

// index[0..p): the positives' columns, ascending; with_self: the query's own too. Returns p.
// Collective.
template <class Team, class S>
RK_FN int gather_positives(const Team& team, const GalleryRow<S>& in, bool with_self, int* index) {
  return team.compact(
      in.member_count, [&](int member) { return in.is_positive(member, with_self); },
      [&](int member, int slot) { index[slot] = in.members[member]; });
}
template <class Team, class S>
RK_FN int gather_positives(const Team& team, const GalleryRow<S>& in, int* index) {
  return gather_positives(team, in, false, index);
}

// Bytes of a row's scratch, which Row::Pieces lays out; for some rows they depend on `params`.
template <class Row>
RK_BOTH std::int64_t scratch_of(const typename Row::Params& params, int columns, int members) {
  using Pieces = typename Row::Pieces;
  if constexpr (requires { Pieces(Scratch(nullptr), params, columns, members); }) {
    return Pieces(Scratch(nullptr), params, columns, members).bytes;
  } else {
    return Pieces(Scratch(nullptr), columns, members).bytes;
  }
}

}  // namespace rk
