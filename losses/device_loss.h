// A loss on a GPU. As losses/loss.h, but that embeddings and gradients stay in the GPU's memory and
// the host waits for nothing until it asks for the value:
//
//   loss->plan(shape);                             // allocates
//   loss->prepare(labels);                         // from the host, every batch
//   loss->launch(embeddings, memory, grad);        // the GPU's work, without waiting
//   LossOutput<float> output = loss->result();     // waits
//
// Embeddings are taken as they are; whether they are finite is not looked at: NaN gives NaN.
//
// What is here is compiled, and has not yet run on a GPU.
#pragma once

#include "engine/cuda_context.h"
#include "losses/loss.h"

namespace rk {

class DeviceLoss {
 public:
  virtual ~DeviceLoss() = default;

  virtual void plan(const LossShape& shape) = 0;

  // Reads rows, memory, labels and identities of `batch`, which lie on the host; its embeddings may
  // be null. They are copied before this returns.
  virtual void prepare(const LossInput<float>& batch) = 0;

  // Device memory: embeddings [N, D], memory [M, D] or null, grad [N, D], overwritten.
  virtual void launch(std::int64_t dim, const float* embeddings, const float* memory,
                      float* grad) = 0;

  // Of the last launch: loss and valid queries, no gradients.
  virtual LossOutput<float> result() = 0;

  // Bytes reserved on the GPU.
  virtual std::int64_t bytes() const = 0;
};

}  // namespace rk
