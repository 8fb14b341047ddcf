// What the processes of a group (engine/group/process_group.h) exchange between the memories of
// their devices: the embeddings before the loss, the gradients behind it. GPUs do so through NCCL,
// without a copy to the host; processes on CPUs as their group does.
//
// Every call is collective and in the order of the context's stream, and none waits: what the GPU
// did before is what it reads, what the GPU does after sees the result. Sums alone run beside the
// stream, so that the gradients of the last layers are summed while the first still compute theirs:
//
//   for each node, backwards {
//     node->backward();
//     if (a bucket is full) group.begin_all_reduce(bucket);
//   }
//   group.finish_all_reduces();  // the optimizer comes behind it
//
// All of it may be captured in a CUDA graph, finish_all_reduces() in the same one as the
// begin_all_reduce()s.
// The order of additions is NCCL's: fixed for a machine and a number of GPUs. A process alone has a
// group too, in which nothing is exchanged.
#pragma once

#include "engine/device/context.h"
#include "engine/group/process_group.h"

#include <cstdint>
#include <memory>

namespace rk {

class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // all = [size, count]: everybody's `own`, in the order of their ranks. `own` may be its own place
  // in `all`, but must not overlap it otherwise.
  virtual void all_gather(const float* own, float* all, std::int64_t count) = 0;
  // Sums element by element over the processes, in place. Until finish_all_reduces() `values` is
  // neither read nor written by anybody else.
  virtual void begin_all_reduce(float* values, std::int64_t count) = 0;
  virtual void finish_all_reduces() = 0;
};

// Collective. DeviceError where there are several processes and NCCL is missing or does not start,
// or two of them have the same GPU. Both arguments outlive the group.
std::unique_ptr<DeviceGroup> make_device_group(const Context& context, ProcessGroup& processes);

}  // namespace rk
