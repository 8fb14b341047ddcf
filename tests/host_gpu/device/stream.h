// The emulated GPU's streams. Work put on a stream is carried out at once. While a CudaGraph
// captures the stream, work is stored with copies of its arguments, as a graph stores a kernel's,
// and carried out by every launch of the graph: this finds an argument in host memory that changes
// from step to step. It also finds a kernel that runs for the first time during a capture: it would
// be loaded then, which CUDA may refuse.
#pragma once

#include "engine/device/cuda_stream.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rk::host_gpu {

using Work = std::vector<std::function<void()>>;

// The work that this thread captures, null if it captures none; throws DeviceError if it captures
// another stream.
Work* capturing(CudaStream stream);

// From now on every capture fails, or none does.
void refuse_captures(bool refuse);

// Calls `work` once and returns what it puts on the stream; none of it is carried out.
Work capture(CudaStream stream, const std::function<void()>& work);

// Throws DeviceError naming `what` while this thread captures: CUDA allows no allocation there, and
// nothing that waits.
void refuse_in_capture(const char* what);

// Marks `kernel` as loaded; throws DeviceError if it is not loaded yet and this thread captures.
void load(const std::string& kernel);

// Copies from a stream's device to the host arrive only when they are waited for, and are NaN until
// then: this finds a host that does not wait.
class Downloads {
 public:
  void add(void* to, const void* from, std::size_t bytes);
  // How many copies there were; waiting for a mark delivers those before it.
  std::size_t count() const { return delivered_ + waiting_.size(); }
  void deliver(std::size_t count);

 private:
  struct Copy {
    void* to;
    std::vector<std::byte> bytes;
  };
  std::deque<Copy> waiting_;
  std::size_t delivered_ = 0;
};
Downloads& downloads_of(CudaStream stream);

// `work` holds all that it needs by value. It is called through a std::function in both cases:
// inlined here, the compiler might add up a sum in another order than in the copy that a graph
// stores.
template <class F> void put(CudaStream stream, F&& work) {
  std::function<void()> task(std::forward<F>(work));
  if (Work* kept = capturing(stream)) {
    kept->push_back(std::move(task));
  } else {
    task();
  }
}
template <class F> void put(CudaStream stream, const std::string& kernel, F&& work) {
  load(kernel);
  put(stream, std::forward<F>(work));
}

}  // namespace rk::host_gpu
