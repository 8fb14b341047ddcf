// The emulated GPU's streams. Work put on a stream waits in its queue, and the only promises about
// when it is carried out are CUDA's: in the stream's order, after the events that the stream waits
// for, and before a wait of the host for it returns. Each stream draws its own pace, so that code
// which relies on more sees, in one run or the next, work that comes too late or too early.
//
// While a CudaGraph captures a stream, work is stored with copies of its arguments, as a graph
// stores a kernel's, and carried out by every launch of the graph: this finds an argument in host
// memory that changes from step to step. It also finds a kernel that runs for the first time during
// a capture: it would be loaded then, which CUDA may refuse.
#pragma once

#include "engine/device/cuda_stream.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace rk::host_gpu {

using Work = std::function<void()>;

// Work and, of each piece, the pieces it comes after. A launch takes any order that these allow.
struct WorkGraph {
  struct Node {
    Work work;
    std::vector<std::size_t> after;
  };
  std::vector<Node> nodes;
  bool at_once = false;  // some of the work meets that of other processes: see put_at_once()
};

struct Capture {
  WorkGraph graph;
  std::vector<CudaStream> streams;  // the one that it began on, and those that joined it
  bool broken = false;              // by a call that may not be captured
};

// When a stream's work is carried out: as soon as it is put there, only when it is waited for, or
// now and then. Copies to the host and results of collectives are never early, nor is what comes
// after them.
enum class Pace { kEarly, kLate, kMixed };

class Queue {
 public:
  Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Where work put now ends, for advance().
  std::uint64_t end();
  void advance(std::uint64_t end);  // carries out all work before `end`
  void put(Work work, bool never_early);

 private:
  struct Task {
    Work work;
    bool never_early;
  };
  bool may_run() const { return !running_ && !waiting_.empty() && !waiting_.front().never_early; }
  void run_first();

  std::recursive_mutex mutex_;
  std::deque<Task> waiting_;
  std::uint64_t done_ = 0;
  bool running_ = false;
  Pace pace_;
  std::mt19937_64 random_;
};

}  // namespace rk::host_gpu

// What CUDA's handle of a stream points to.
struct CUstream_st {
  std::shared_ptr<rk::host_gpu::Queue> queue = std::make_shared<rk::host_gpu::Queue>();
  std::shared_ptr<rk::host_gpu::Capture> capture;  // null: not captured
  std::vector<std::size_t> last;                   // nodes that the next captured one comes after
};

namespace rk::host_gpu {

// Adds to what wait_for_all() waits for.
void keep(const std::shared_ptr<Queue>& queue);

// From now on every capture of this thread fails, or none does.
void refuse_captures(bool refuse);
bool captures_are_refused();

// The capture that this thread began, null if none.
std::shared_ptr<Capture>& current_capture();

// Breaks the current capture, if there is one, and says whether it did: CUDA allows no allocation
// there, and nothing that waits.
bool break_capture();

// Marks `kernel` as loaded; throws DeviceError if it is not loaded yet and this thread captures.
void load(const std::string& kernel);

// `work` holds all that it needs by value; if it is never early, no pace carries it out before
// something waits for it. Throws DeviceError if this thread captures, but not that
// stream.
void put(CudaStream stream, Work work, bool never_early = false);
void put(CudaStream stream, const std::string& kernel, Work work);

// Also carries it out, with all before it: other processes wait for it, and their hosts meet ours
// in between.
void put_at_once(CudaStream stream, Work work);

void wait_for(CudaStream stream);

// For all work of the streams that this thread made, as if every thread had a GPU of its own.
void wait_for_all();

// Carries out the graph's work once, in a drawn order.
void carry_out(const WorkGraph& graph);

}  // namespace rk::host_gpu
