#include "losses/frame/batch_index.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "kernels/team.h"

#include <algorithm>
#include <limits>

namespace rk {

void BatchIndex::allocate(const LossShape& shape) {
  const std::int64_t columns = shape.rows + shape.memory;
  expect(shape.rows >= 0 && shape.memory >= 0 &&
             columns <= std::numeric_limits<std::int32_t>::max() - 2 * kLanes,
         "[loss] expected fewer than 2^31 columns, got {} rows and {} of memory", shape.rows,
         shape.memory);
  const auto n = static_cast<std::size_t>(columns);
  order_.resize(n);
  classes_.assign(n + kLanes, 0);  // row kernels read up to pad(columns)
  members_.resize(n);
  first_member_.resize(n + 1);
  positives_.resize(static_cast<std::size_t>(shape.rows));
  image_ids_.assign(n + kLanes, 0);
}

template <class S> void BatchIndex::build(const LossInput<S>& input) {
  rows_ = static_cast<int>(input.rows);
  columns_ = static_cast<int>(input.rows + input.memory);
  const auto rows = static_cast<std::size_t>(rows_);
  const auto columns = static_cast<std::size_t>(columns_);
  expect(columns <= order_.size() && rows <= positives_.size(),
         "[loss] expected at most {} rows and {} columns as allocated, got {} and {}",
         positives_.size(), order_.size(), rows, columns);

  for (std::size_t c = 0; c < columns; ++c) {
    const std::int64_t label = c < rows ? input.labels[c] : input.memory_labels[c - rows];
    order_[c] = {label, static_cast<std::int32_t>(c)};
  }
  std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(columns));
  std::int32_t classes = 0;
  first_member_[0] = 0;
  for (std::size_t k = 0; k < columns; ++k) {
    if (k > 0 && order_[k].first != order_[k - 1].first) {
      ++classes;
      first_member_[at(classes)] = static_cast<std::int32_t>(k);
    }
    members_[k] = order_[k].second;
    classes_[at(order_[k].second)] = classes;
  }
  if (columns > 0) first_member_[static_cast<std::size_t>(classes) + 1] = columns_;

  has_image_ids_ = input.image_ids != nullptr;
  expect(input.memory == 0 || has_image_ids_ == (input.memory_image_ids != nullptr),
         "[loss] expected image_ids of the batch and of the memory, or of neither");
  if (has_image_ids_) {
    std::copy_n(input.image_ids, rows, image_ids_.begin());
    if (input.memory > 0) {
      std::copy_n(input.memory_image_ids, columns - rows,
                  image_ids_.begin() + static_cast<std::ptrdiff_t>(rows));
    }
  }

  with_positive_ = with_both_ = positive_pairs_ = negative_pairs_ = 0;
  for (int query = 0; query < rows_; ++query) {
    int count = member_count(query) - 1;
    if (has_image_ids_) {
      const std::int32_t* own = members() + first_member(query);
      const std::int64_t image = image_ids_[at(query)];
      count =
          static_cast<int>(std::count_if(own, own + member_count(query), [&](std::int32_t column) {
            return image_ids_[at(column)] != image;
          }));
    }
    positives_[at(query)] = count;
    with_positive_ += count > 0;
    with_both_ += count > 0 && negatives(query) > 0;
    positive_pairs_ += count;
    negative_pairs_ += negatives(query);
  }
}

std::int64_t BatchIndex::bytes() const {
  return static_cast<std::int64_t>(
      order_.size() * sizeof(order_[0]) + image_ids_.size() * sizeof(std::int64_t) +
      (classes_.size() + members_.size() + first_member_.size() + positives_.size()) *
          sizeof(std::int32_t));
}

template void BatchIndex::build(const LossInput<float>&);
template void BatchIndex::build(const LossInput<double>&);

}  // namespace rk
