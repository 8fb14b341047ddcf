// Which items are whose positives: built once a step from labels and image_ids, shared by every
// row. Columns are the batch in order, then the memory. Classes get dense numbers, 0 for the
// smallest label. Lives on the host; rows read a copy (losses/frame/device_batch.h).
#pragma once

#include "engine/base/integers.h"
#include "losses/frame/loss.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace rk {

class BatchIndex {
 public:
  void allocate(const LossShape& shape);

  // Does not allocate. Sizes must be within those of allocate().
  template <class S> void build(const LossInput<S>& input);

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int positives(int row) const { return positives_[at(row)]; }
  int negatives(int row) const { return columns_ - member_count(row); }
  const std::int32_t* classes() const { return classes_.data(); }  // [columns]
  const std::int32_t* members() const { return members_.data(); }  // [columns], by class
  // [columns], or null if every column is an image of its own.
  const std::int64_t* image_ids() const { return has_image_ids_ ? image_ids_.data() : nullptr; }
  // Where the class of a column begins in members(), and its length.
  std::int32_t first_member(int column) const { return first_member_[class_of(column)]; }
  std::int32_t member_count(int column) const {
    return first_member_[class_of(column) + 1] - first_member(column);
  }

  // Queries with a positive; with a positive and a negative.
  std::int64_t with_positive() const { return with_positive_; }
  std::int64_t with_both() const { return with_both_; }
  // Ordered (query, gallery item) pairs.
  std::int64_t positive_pairs() const { return positive_pairs_; }
  std::int64_t negative_pairs() const { return negative_pairs_; }

  std::int64_t bytes() const;

 private:
  std::size_t class_of(int column) const { return static_cast<std::size_t>(classes_[at(column)]); }

  int rows_ = 0;
  int columns_ = 0;
  bool has_image_ids_ = false;
  std::int64_t with_positive_ = 0;
  std::int64_t with_both_ = 0;
  std::int64_t positive_pairs_ = 0;
  std::int64_t negative_pairs_ = 0;
  std::vector<std::pair<std::int64_t, std::int32_t>> order_;  // (label, column), sorted
  std::vector<std::int32_t> classes_;                         // [columns]
  std::vector<std::int32_t> members_;                         // columns by class, ascending within
  std::vector<std::int32_t> first_member_;                    // [classes + 1]
  std::vector<std::int32_t> positives_;                       // [rows]
  std::vector<std::int64_t> image_ids_;                       // [columns]
};

}  // namespace rk
