#include "losses/frame/device_batch.h"

#include <algorithm>

namespace rk {

template <class S>
void DeviceBatch<S>::allocate(const Context& context, const LossShape& shape,
                              std::size_t param_bytes) {
  const auto rows = static_cast<std::size_t>(shape.rows);
  const auto columns = static_cast<std::size_t>(shape.rows + shape.memory);
  packed_ = PackedMemory();
  // Row kernels read arrays over columns up to pad(columns).
  image_ids_ = packed_.add((columns + kLanes) * sizeof(std::int64_t));
  classes_ = packed_.add((columns + kLanes) * sizeof(std::int32_t));
  members_ = packed_.add(columns * sizeof(std::int32_t));
  first_members_ = packed_.add(rows * sizeof(std::int32_t));
  member_counts_ = packed_.add(rows * sizeof(std::int32_t));
  weight_ = packed_.add(sizeof(S));
  numbers_ = packed_.add(sizeof(BatchNumbers));
  params_ = packed_.add(param_bytes);
  counted_ = packed_.add(rows);
  packed_.allocate(context);
}

template <class S>
void DeviceBatch<S>::begin(const BatchIndex& index, S weight, const BatchNumbers& numbers,
                           std::span<const std::byte> params) {
  packed_.begin();
  rows_ = index.rows();
  columns_ = index.columns();
  has_image_ids_ = index.image_ids() != nullptr;
  std::copy_n(index.classes(), columns_, packed_.host<std::int32_t>(classes_));
  std::copy_n(index.members(), columns_, packed_.host<std::int32_t>(members_));
  if (has_image_ids_) {
    std::copy_n(index.image_ids(), columns_, packed_.host<std::int64_t>(image_ids_));
  }
  auto* first = packed_.host<std::int32_t>(first_members_);
  auto* count = packed_.host<std::int32_t>(member_counts_);
  for (int row = 0; row < rows_; ++row) {
    first[row] = index.first_member(row);
    count[row] = index.member_count(row);
  }
  *packed_.host<S>(weight_) = weight;
  *packed_.host<BatchNumbers>(numbers_) = numbers;
  std::ranges::copy(params, packed_.host<std::byte>(params_));
}

template <class S> RowBatch<S> DeviceBatch<S>::rows() const {
  RowBatch<S> batch;
  batch.rows = rows_;
  batch.columns = columns_;
  batch.classes = packed_.device<std::int32_t>(classes_);
  batch.members = packed_.device<std::int32_t>(members_);
  batch.first_members = packed_.device<std::int32_t>(first_members_);
  batch.member_counts = packed_.device<std::int32_t>(member_counts_);
  if (has_image_ids_) batch.image_ids = packed_.device<std::int64_t>(image_ids_);
  batch.counted = packed_.device<std::uint8_t>(counted_);
  batch.weight = packed_.device<S>(weight_);
  return batch;
}

template class DeviceBatch<float>;
template class DeviceBatch<double>;

}  // namespace rk
