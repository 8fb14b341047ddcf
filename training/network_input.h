// Writes pixels into a network's input tensor as (level / 255 - mean) / std: on the CPU as float32
// in the layout that the program wants (planes of pixels, or NHWC), on a GPU by a kernel
// (layers/gpu/input.h).
#pragma once

#include "data/images/transform.h"
#include "engine/tape/program.h"
#include "weights/model_description.h"

#include <cstdint>
#include <memory>
#include <span>

namespace rk {

class GpuInput;

// The table of a model's mean and std.
FloatTable float_table(const ModelDescription& model);

// pixels: [count, size, size, 3] uint8, count <= the program's batch; the remaining rows keep their
// values. Allocates nothing.
void fill_input(Program& program, TensorId input, const FloatTable& table,
                std::span<const std::uint8_t> pixels);

// Feeds batches into the program of a training step, whose own batch may be smaller (a chunk).
class NetworkInput {
 public:
  // images: per batch.
  NetworkInput(Program& program, TensorId input, const FloatTable& table, std::int64_t images);
  ~NetworkInput();

  // Sets the pixels of the next batch. If pixels are copied (to a GPU, during the previous step),
  // the caller may reuse them when this returns; otherwise they are read in place until the next
  // take().
  void stage(std::span<const std::uint8_t> pixels);
  bool copies_pixels() const { return gpu_ != nullptr; }
  // Makes the staged batch the current one.
  void take();
  // Only if pixels are copied: makes the previous batch current again; none may have been staged
  // since.
  void take_back();
  // Fills the program's input with images of the current batch, starting at image `first`.
  void fill(std::int64_t first);

  std::size_t bytes() const;  // on the GPU

 private:
  Program& program_;
  TensorId input_;
  FloatTable table_;
  std::span<const std::uint8_t> staged_, pixels_;
  std::unique_ptr<GpuInput> gpu_;
};

}  // namespace rk
