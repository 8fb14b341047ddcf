// The batch's data that row kernels read, in the memory of the device they run on.
#pragma once

#include "engine/device/packed_memory.h"
#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/row_batch.h"
#include "losses/frame/batch_index.h"

#include <cstdint>
#include <span>

namespace rk {

template <class S> class DeviceBatch {
 public:
  // param_bytes: size of the rows' parameters, which are copied along.
  void allocate(const Context& context, const LossShape& shape, std::size_t param_bytes);

  // counts(row): whether a row has a loss.
  template <class Counts>
  void pack(const Context& context, const BatchIndex& index, S weight, const BatchNumbers& numbers,
            std::span<const std::byte> params, Counts&& counts) {
    begin(index, weight, numbers, params);
    auto* counted = packed_.host<std::uint8_t>(counted_);
    for (int row = 0; row < index.rows(); ++row) counted[row] = counts(row) ? 1 : 0;
    packed_.send(context);
  }

  // Everything but scores, stride and losses.
  RowBatch<S> rows() const;
  void* params() const { return packed_.device<std::byte>(params_); }
  const BatchNumbers* numbers() const { return packed_.device<BatchNumbers>(numbers_); }
  std::int64_t bytes() const { return packed_.bytes(); }

 private:
  void begin(const BatchIndex& index, S weight, const BatchNumbers& numbers,
             std::span<const std::byte> params);

  // Offsets of the pieces, for the allocated sizes.
  std::size_t classes_ = 0, members_ = 0, first_members_ = 0, member_counts_ = 0, image_ids_ = 0,
              weight_ = 0, numbers_ = 0, params_ = 0, counted_ = 0;
  int rows_ = 0;
  int columns_ = 0;
  bool has_image_ids_ = false;
  PackedMemory packed_;
};

}  // namespace rk
