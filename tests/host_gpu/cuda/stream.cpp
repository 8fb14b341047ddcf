#include "tests/host_gpu/cuda/stream.h"

#include "engine/base/error.h"
#include "tests/support/random_seed.h"

#include <array>
#include <atomic>
#include <exception>
#include <set>

namespace rk::host_gpu {
namespace {

thread_local bool captures_refused = false;

// Of the streams that this thread made.
thread_local std::vector<std::weak_ptr<Queue>> queues;

// Every stream and every launch of a graph draws with another seed.
std::mt19937_64 next_random() {
  static const std::uint64_t seed = random_seed();
  static std::atomic<std::uint64_t> drawn = 0;
  return std::mt19937_64(seed + 0x9E3779B97F4A7C15 * ++drawn);
}

void add_node(CudaStream stream, Work work) {
  std::vector<WorkGraph::Node>& nodes = stream->capture->graph.nodes;
  nodes.push_back({std::move(work), std::move(stream->last)});
  stream->last = {nodes.size() - 1};
}

// The default stream is one of its own in each thread.
CudaStream own(CudaStream stream) {
  if (stream != nullptr) return stream;
  thread_local CUstream_st of_this_thread;
  thread_local bool kept = false;
  if (!std::exchange(kept, true)) keep(of_this_thread.queue);
  return &of_this_thread;
}

bool is_captured(CudaStream stream) {
  if (stream->capture != nullptr) return true;
  if (current_capture() == nullptr) return false;
  break_capture();
  fail<DeviceError>("[capture] work on a stream that is not captured");
}

}  // namespace

Queue::Queue() : random_(next_random()) {
  pace_ = std::array{Pace::kEarly, Pace::kLate, Pace::kMixed}[random_() % 3];
}

std::uint64_t Queue::end() {
  const std::lock_guard lock(mutex_);
  return done_ + waiting_.size() + (running_ ? 1 : 0);
}

void Queue::run_first() {
  const Task task = std::move(waiting_.front());
  waiting_.pop_front();
  running_ = true;
  try {
    task.work();
  } catch (...) {
    running_ = false;
    ++done_;
    throw;
  }
  running_ = false;
  ++done_;
}

void Queue::advance(std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  while (done_ < end && !running_ && !waiting_.empty()) run_first();
}

void Queue::put(Work work, bool never_early) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(work), never_early});
  if (pace_ == Pace::kLate) return;
  while (may_run() && (pace_ == Pace::kEarly || random_() % 2 == 0)) run_first();
}

void refuse_captures(bool refuse) { captures_refused = refuse; }
bool captures_are_refused() { return captures_refused; }

std::shared_ptr<Capture>& current_capture() {
  thread_local std::shared_ptr<Capture> capture;
  return capture;
}

bool break_capture() {
  if (current_capture() == nullptr) return false;
  current_capture()->broken = true;
  return true;
}

void load(const std::string& kernel) {
  static std::mutex mutex;
  static std::set<std::string> loaded;
  const std::lock_guard lock(mutex);
  if (current_capture() == nullptr) {
    loaded.insert(kernel);
  } else if (!loaded.contains(kernel)) {
    break_capture();
    fail<DeviceError>("[capture] {} runs for the first time while a stream is captured", kernel);
  }
}

void keep(const std::shared_ptr<Queue>& queue) {
  std::erase_if(queues, [](const std::weak_ptr<Queue>& held) { return held.expired(); });
  queues.push_back(queue);
}

void put(CudaStream stream, Work work, bool never_early) {
  stream = own(stream);
  if (is_captured(stream)) {
    add_node(stream, std::move(work));
  } else {
    stream->queue->put(std::move(work), never_early);
  }
}

void put(CudaStream stream, const std::string& kernel, Work work) {
  load(kernel);
  put(stream, std::move(work));
}

void put_at_once(CudaStream stream, Work work) {
  put(stream, std::move(work));
  if (stream->capture != nullptr) {
    stream->capture->graph.at_once = true;
  } else {
    wait_for(stream);
  }
}

void wait_for(CudaStream stream) {
  Queue& queue = *own(stream)->queue;
  queue.advance(queue.end());
}

void wait_for_all() {
  for (const std::weak_ptr<Queue>& held : queues) {
    if (const std::shared_ptr<Queue> queue = held.lock()) queue->advance(queue->end());
  }
}

void carry_out(const WorkGraph& graph) {
  std::mt19937_64 random = next_random();
  const std::size_t count = graph.nodes.size();
  std::vector<std::size_t> open(count), ready;
  std::vector<std::vector<std::size_t>> then(count);
  for (std::size_t n = 0; n < count; ++n) {
    open[n] = graph.nodes[n].after.size();
    if (open[n] == 0) ready.push_back(n);
    for (const std::size_t before : graph.nodes[n].after) then[before].push_back(n);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::size_t node = ready.back();
    ready.pop_back();
    graph.nodes[node].work();
    for (const std::size_t next : then[node]) {
      if (--open[next] == 0) ready.push_back(next);
    }
  }
}

}  // namespace rk::host_gpu
