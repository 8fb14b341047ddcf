#include "losses/cuda/batch.h"

#include "engine/base/error.h"

#include <algorithm>

namespace rk {

void DeviceBatch::plan(const LossShape& shape, std::size_t param_bytes) {
  const auto rows = static_cast<std::size_t>(shape.rows);
  const auto columns = static_cast<std::size_t>(shape.rows + shape.memory);
  bytes_ = 0;
  const auto place = [&](std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  };
  // Row kernels read arrays over columns up to pad(columns).
  images_ = place((columns + kLanes) * sizeof(std::int64_t));
  classes_ = place((columns + kLanes) * sizeof(std::int32_t));
  members_ = place(columns * sizeof(std::int32_t));
  first_members_ = place(rows * sizeof(std::int32_t));
  member_counts_ = place(rows * sizeof(std::int32_t));
  weight_ = place(sizeof(float));
  numbers_ = place(sizeof(BatchNumbers));
  params_ = place(param_bytes);
  counted_ = place(rows);
  host_ = PinnedBuffer(bytes_);
  std::fill_n(host_.as<std::byte>(), bytes_, std::byte{0});
  device_ = DeviceBuffer(bytes_);
  copied_ = false;
}

void DeviceBatch::begin(const CudaContext& cuda, const BatchIndex& index, float weight,
                        const BatchNumbers& numbers, std::span<const std::byte> params) {
  if (copied_) cuda.synchronize();
  copied_ = true;
  rows_ = index.rows();
  columns_ = index.columns();
  std::byte* host = host_.as<std::byte>();
  const auto copy = [&](std::size_t offset, const auto* from, std::size_t count) {
    const auto bytes = std::as_bytes(std::span(from, count));
    std::ranges::copy(bytes, host + offset);
  };
  const auto columns = static_cast<std::size_t>(columns_);
  auto* first = reinterpret_cast<std::int32_t*>(host + first_members_);
  auto* count = reinterpret_cast<std::int32_t*>(host + member_counts_);
  has_images_ = false;
  const std::int32_t* members = nullptr;
  for (int row = 0; row < rows_; ++row) {
    const GalleryRow<float> in = index.row<float>(row);
    if (row == 0) {
      members = index.members();
      copy(classes_, in.classes, columns);
      copy(members_, members, columns);
      has_images_ = in.images != nullptr;
      if (has_images_) copy(images_, in.images, columns);
    }
    first[row] = static_cast<std::int32_t>(in.members - members);
    count[row] = in.member_count;
  }
  copy(weight_, &weight, 1);
  copy(numbers_, &numbers, 1);
  std::ranges::copy(params, host + params_);
}

RowBatch DeviceBatch::rows() const {
  const std::byte* device = device_.as<std::byte>();
  RowBatch batch;
  batch.rows = rows_;
  batch.columns = columns_;
  batch.classes = reinterpret_cast<const std::int32_t*>(device + classes_);
  batch.members = reinterpret_cast<const std::int32_t*>(device + members_);
  batch.first_members = reinterpret_cast<const std::int32_t*>(device + first_members_);
  batch.member_counts = reinterpret_cast<const std::int32_t*>(device + member_counts_);
  if (has_images_) batch.images = reinterpret_cast<const std::int64_t*>(device + images_);
  batch.counted = reinterpret_cast<const std::uint8_t*>(device + counted_);
  batch.weight = reinterpret_cast<const float*>(device + weight_);
  return batch;
}

}  // namespace rk
