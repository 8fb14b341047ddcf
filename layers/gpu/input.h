// Writes pictures from the host into a program's input on a GPU: bytes are uploaded, and one kernel
// converts them to numbers (kernels/blocks/input_block.h). A batch may hold several of the
// program's batches: it is uploaded once, and fill() converts the images of one at a time.
#pragma once

#include "engine/device/cuda/upload.h"
#include "engine/tape/program.h"

#include <cstdint>
#include <span>

namespace rk {

class GpuInput {
 public:
  // table: [3, 256], the number for each level of each colour. images: the largest number uploaded
  // at once, of the program's image size.
  GpuInput(const Program& program, TensorId input, std::span<const float> table,
           std::int64_t images);

  // pixels [count, side, side, 3]: the caller may reuse them when this returns. The upload runs
  // concurrently with the GPU's work until take().
  void stage(std::span<const std::uint8_t> pixels);
  void take();
  // Restores the batch before the one taken last (DeviceUpload::take_back).
  void take_back();
  // Fills the program's batch from the images taken, starting at image `first`; for images beyond
  // those taken, kernels read leftovers of earlier batches.
  void fill(std::int64_t first) const;

  std::size_t bytes() const { return upload_.reserved_bytes() + table_.bytes(); }

 private:
  const Program& program_;
  TensorId input_;
  Memory table_;
  DeviceUpload upload_;
};

}  // namespace rk
