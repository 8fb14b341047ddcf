// What row kernels on a GPU are told of a batch, packed on the host and copied in one piece.
#pragma once

#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "kernels/cuda/rows.h"
#include "kernels/rows/batch_numbers.h"
#include "losses/frame/batch_index.h"

#include <cstdint>
#include <span>

namespace rk {

class DeviceBatch {
 public:
  // param_bytes: of the kernel's parameters, which travel along.
  void plan(const LossShape& shape, std::size_t param_bytes);

  // counts(row): whether a row has a loss. Waits until the last batch's copy is done.
  template <class Counts>
  void pack(const CudaContext& cuda, const BatchIndex& index, float weight,
            const BatchNumbers& numbers, std::span<const std::byte> params, Counts&& counts) {
    begin(cuda, index, weight, numbers, params);
    for (int row = 0; row < index.rows(); ++row) counted()[row] = counts(row) ? 1 : 0;
    cuda.upload(device_.as<std::byte>(), host_.as<std::byte>(), bytes_);
  }

  // The batch in device memory: everything but scores, stride and losses.
  RowBatch rows() const;
  void* params() const { return device_.as<std::byte>() + params_; }
  const BatchNumbers* numbers() const {
    return reinterpret_cast<const BatchNumbers*>(device_.as<std::byte>() + numbers_);
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(device_.bytes()); }

 private:
  void begin(const CudaContext& cuda, const BatchIndex& index, float weight,
             const BatchNumbers& numbers, std::span<const std::byte> params);
  std::uint8_t* counted() const { return host_.as<std::uint8_t>() + counted_; }

  // Offsets of the parts, for the sizes planned.
  std::size_t classes_ = 0, members_ = 0, first_members_ = 0, member_counts_ = 0, images_ = 0,
              weight_ = 0, numbers_ = 0, params_ = 0, counted_ = 0, bytes_ = 0;
  int rows_ = 0;
  int columns_ = 0;
  bool has_images_ = false;
  bool copied_ = false;
  PinnedBuffer host_;
  DeviceBuffer device_;
};

}  // namespace rk
