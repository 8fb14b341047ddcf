// A loss on a GPU. As losses/frame/loss.h, but that embeddings and gradients stay in the GPU's
// memory and the host waits for nothing until it asks for the value:
//
//   loss->plan(shape);                             // allocates
//   loss->prepare(batch);                          // labels, from the host, every batch
//   loss->launch(input, output);                   // the GPU's work, without waiting
//   LossOutput<float> value = loss->result();      // waits
//
// Embeddings are taken as they are; where one is not finite, neither is the loss. Proxies are
// looked at (losses/cuda/proxy.h), scores are not.
//
// tests/cuda/device_losses_test.cpp compares it with the CPU, tests/host_gpu on a GPU made of the
// host.
#pragma once

#include "engine/device/cuda/context.h"
#include "losses/frame/loss.h"

namespace rk {

// What launch() reads and writes, in device memory; as in LossInput and LossOutput.
struct DeviceLossInput {
  std::int64_t dim = 0;
  const float* embeddings = nullptr;  // [N, D]
  const float* memory = nullptr;      // [M, D]
  const float* proxies = nullptr;     // [C, D]
  const float* scores = nullptr;      // [N, C]
};
struct DeviceLossOutput {
  float* grad = nullptr;          // [N, D], or [N, C] for losses on scores; overwritten
  float* grad_proxies = nullptr;  // [C, D], overwritten by losses with proxies
};

class DeviceLoss {
 public:
  virtual ~DeviceLoss() = default;

  virtual void plan(const LossShape& shape) = 0;

  // Reads everything of `batch` but its floats, which lie on the GPU: sizes, labels, identities,
  // targets. They are copied before this returns.
  virtual void prepare(const LossInput<float>& batch) = 0;

  // May be captured (engine/device/cuda/graph.h).
  virtual void launch(const DeviceLossInput& input, const DeviceLossOutput& output) = 0;

  // Of the last launch: loss and valid queries, no gradients.
  virtual LossOutput<float> result() = 0;

  // How many kernels of our own a launch puts on the stream, beside products, sorts and copies.
  virtual int kernels() const = 0;

  // Bytes reserved on the GPU.
  virtual std::int64_t bytes() const = 0;
};

}  // namespace rk
