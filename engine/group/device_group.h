// Collectives between the device memories of a group's processes (engine/group/process_group.h):
// the embeddings before the loss, the gradients after it. GPUs use NCCL, without a copy to the
// host; processes on CPUs use their ProcessGroup.
//
// Every call is collective, in the order of the context's stream, and does not wait: it reads what
// earlier work on the GPU wrote, and later work sees its result. Only the all-reduces run
// concurrently with the stream, so that the gradients of the last layers are summed while the first
// layers still compute theirs:
//
//   for each node, backwards {
//     node->backward();
//     if (a bucket is full) group.begin_all_reduce(bucket);
//   }
//   group.finish_all_reduces();  // before the optimizer
//
// All calls may be captured in a CUDA graph; finish_all_reduces() must be in the same graph as its
// begin_all_reduce() calls, and of several processes either all replay such a graph or none does,
// after renew().
// All get the same sums, to the bit. In which order NCCL adds depends on the machine, the number of
// GPUs and its version; where switches of NVLink add (NCCL_ALGO without ^NVLS), also on the run. A
// single process has a group too, which exchanges nothing.
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

  // all = [size, count]: the `own` of every process, in rank order. `own` may be this process's
  // place in `all`, but must not overlap `all` otherwise.
  virtual void all_gather(const float* own, float* all, std::int64_t count) = 0;
  // Sums element by element over the processes, in place. Nobody else may read or write `values`
  // until finish_all_reduces(). Ranges begun before that must lie side by side.
  virtual void begin_all_reduce(float* values, std::int64_t count) = 0;
  virtual void finish_all_reduces() = 0;

  // Collective; waits. After a capture of these calls that failed, or was thrown away, in any of
  // the processes, NCCL may refuse further ones: this connects the processes anew. No graph that
  // captured such calls may be left.
  virtual void renew() {}
};

// Collective. Throws DeviceError if there are several processes and NCCL is missing or does not
// start, or two of them have the same GPU. Both arguments must outlive the group.
std::unique_ptr<DeviceGroup> make_device_group(const Context& context, ProcessGroup& processes);

}  // namespace rk
