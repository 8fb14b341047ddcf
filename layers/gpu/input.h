// Pictures from the host into a program's input on a GPU: bytes go up, one kernel turns them into
// numbers (kernels/blocks/input_block.h). A batch may hold several of the program's: it is uploaded
// once, and fill() takes the images of one after another.
#pragma once

#include "engine/device/cuda/upload.h"
#include "engine/tape/program.h"

#include <cstdint>
#include <span>

namespace rk {

class GpuInput {
 public:
  // table: [3, 256], the number of each level of each colour. images: the most that are uploaded at
  // once, as large as the program's.
  GpuInput(const Program& program, TensorId input, std::span<const float> table,
           std::int64_t images);

  // pixels [count, side, side, 3] may be used again when this returns; the upload runs beside the
  // GPU's work until take().
  void stage(std::span<const std::uint8_t> pixels);
  void take();
  // The images of the batch before the one that was taken last (DeviceUpload::take_back).
  void take_back();
  // The program's batch from the images taken, from number `first` on; kernels of images beyond
  // those taken read what was there before.
  void fill(std::int64_t first) const;

  std::size_t bytes() const { return upload_.reserved_bytes() + table_.bytes(); }

 private:
  const Program& program_;
  TensorId input_;
  Memory table_;
  DeviceUpload upload_;
};

}  // namespace rk
