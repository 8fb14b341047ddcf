// Pixels into a network's input tensor: (level / 255 - mean) / std, on the CPU as float32 in the
// layout that the program asks for (planes of pixels, or NHWC), on a GPU by a kernel
// (layers/gpu/input.h).
#pragma once

#include "data/images/transform.h"
#include "engine/tape/program.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <memory>
#include <span>

namespace rk {

class GpuInput;

// The values of a model, rounded to float32 as torchvision does.
FloatTable float_table(const ModelDescription& model);

// pixels: [count, size, size, 3] uint8, count <= the program's batch; the rows behind keep what
// they hold. Allocates nothing.
void fill_input(Program& program, TensorId input, const FloatTable& table,
                std::span<const std::uint8_t> pixels);

// Batches on their way into the program of a training step, which may take fewer images at a time.
class NetworkInput {
 public:
  // images: of a batch.
  NetworkInput(Program& program, TensorId input, const FloatTable& table, std::int64_t images);
  ~NetworkInput();

  // The pixels of the batch that comes next. Where they are copied (to a GPU, beside the step
  // before) they may be used again when this returns; else they are read where they are, until the
  // next take().
  void stage(std::span<const std::uint8_t> pixels);
  bool copies_pixels() const { return gpu_ != nullptr; }
  // What was staged is the batch from now on.
  void take();
  // Where pixels are copied: the batch before it again; nothing may have been staged since.
  void take_back();
  // The program's images from the batch, from number `first` on.
  void fill(std::int64_t first);

  std::size_t bytes() const;  // of a GPU

 private:
  Program& program_;
  TensorId input_;
  FloatTable table_;
  std::span<const std::uint8_t> staged_, pixels_;
  std::unique_ptr<GpuInput> gpu_;
};

}  // namespace rk
