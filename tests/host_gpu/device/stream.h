// The streams of the GPU that is made of the host. Work put on one is carried out at once; while a
// CudaGraph captures it, work is kept with copies of its arguments, as a graph keeps a kernel's,
// and carried out by every launch of the graph: an argument of the host that changes from step to
// step is found out. So is a kernel that runs for the first time while a stream is captured: it
// would be loaded then, which CUDA may refuse.
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

// What this thread captures, null where it does not; DeviceError where it captures another stream.
Work* capturing(CudaStream stream);

// From now on every capture fails, or none does.
void refuse_captures(bool refuse);

// What `work`, called once, puts on the stream; none of it is carried out.
Work capture(CudaStream stream, const std::function<void()>& work);

// DeviceError naming `what` while this thread captures: CUDA allows no allocation there, and
// nothing that waits.
void refuse_in_capture(const char* what);

// Notes that `kernel` is loaded; DeviceError where it is not and this thread captures.
void load(const std::string& kernel);

// What goes from a stream's device to the host arrives there when it is waited for, and is NaN
// until then: a host that does not wait is found out.
class Downloads {
 public:
  void add(void* to, const void* from, std::size_t bytes);
  // How many there were; those before a mark are delivered by who waits for it.
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

// `work` holds all that it needs by value. It is called through a std::function both times: inlined
// here the compiler may add up a sum in another order than in the copy that a graph keeps.
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
