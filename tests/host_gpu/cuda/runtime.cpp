// The functions of the CUDA runtime that engine/ calls, on the host.
#include "engine/base/error.h"
#include "tests/host_gpu/cuda/device.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>

using namespace rk::host_gpu;
using Clock = std::chrono::steady_clock;

// A point of a stream's work: the last record.
struct CUevent_st {
  std::shared_ptr<Queue> queue;  // null: never recorded
  std::uint64_t end = 0;
  std::shared_ptr<Clock::time_point> reached = std::make_shared<Clock::time_point>();
  std::shared_ptr<Capture> capture;  // where the record was captured, with the nodes before it
  std::vector<std::size_t> nodes;
};
struct CUgraph_st {
  WorkGraph work;
};
struct CUgraphExec_st {
  std::shared_ptr<const WorkGraph> work;
};

namespace {

std::atomic<bool> one_gpu = false;
std::atomic<bool> has_faulted = false;

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t failed(cudaError_t error) { return last_error = error; }
cudaError_t fault() { return failed(cudaErrorIllegalAddress); }

// Whether every node comes before one of `last`.
bool all_before(const WorkGraph& graph, std::vector<std::size_t> last) {
  std::set<std::size_t> found(last.begin(), last.end());
  while (!last.empty()) {
    const std::size_t node = last.back();
    last.pop_back();
    for (const std::size_t before : graph.nodes[node].after) {
      if (found.insert(before).second) last.push_back(before);
    }
  }
  return found.size() == graph.nodes.size();
}

cudaError_t allocated(void** data, Kind kind, std::size_t bytes) {
  if (break_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  *data = allocate(kind, bytes);
  return *data == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}

// As CUDA, waits for the work that may still use the memory. Called by destructors, so what that
// work throws is lost.
cudaError_t released(void* data) {
  if (data == nullptr) return cudaSuccess;
  try {
    wait_for_all();
    release(data);
  } catch (const std::exception&) {
    return failed(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

}  // namespace

void rk::host_gpu::share_one_gpu(bool shared) { one_gpu = shared; }
void rk::host_gpu::fault(bool faulted) { has_faulted = faulted; }

// Devices and errors ---------------------------------------------------------------------------

// No driver: programs that look for a GPU find none; only tests know of this one.
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int*) { return failed(cudaErrorNoDevice); }
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
  static std::atomic<int> threads = 0;
  thread_local const int thread = ++threads;
  std::snprintf(id, static_cast<std::size_t>(length), "host %d", one_gpu ? 0 : thread);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : failed(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "the host as a GPU");
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation: return "dependency on work outside the capture";
    default: return "another error";
  }
}
cudaError_t cudaDeviceSynchronize() {
  if (break_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  wait_for_all();
  return has_faulted ? fault() : cudaSuccess;
}

// Memory -----------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (has_faulted) return fault();
  return allocated(data, Kind::kDevice, bytes);
}
cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  if (has_faulted) return fault();
  return allocated(data, Kind::kHost, bytes);
}
cudaError_t cudaFree(void* data) { return released(data); }
cudaError_t cudaFreeHost(void* data) { return released(data); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (has_faulted) return fault();
  *free = free_bytes();
  *total = kTotal;
  return cudaSuccess;
}

// On the default stream, which does not wait for our streams. A copy to the GPU has left the host's
// memory when it returns, but need not have arrived.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (has_faulted) return fault();
  if (break_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  const bool up = kind == cudaMemcpyHostToDevice;
  expect_kind(Kind::kDevice, up ? to : from, bytes, "copy");
  const auto* first = static_cast<const std::byte*>(from);
  if (up) {
    put(nullptr, [to, copy = std::vector(first, first + bytes)] {
      std::memcpy(to, copy.data(), copy.size());
    });
  } else {
    wait_for(nullptr);
    std::memcpy(to, from, bytes);
  }
  return cudaSuccess;
}

// A copy from or to the host must not be captured: of ordinary memory, it may wait.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (has_faulted) return fault();
  const bool up = kind == cudaMemcpyHostToDevice, down = kind == cudaMemcpyDeviceToHost;
  if ((up || down) && break_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  expect_kind(down ? Kind::kHost : Kind::kDevice, to, bytes, "copy, its target");
  expect_kind(up ? Kind::kHost : Kind::kDevice, from, bytes, "copy, its source");
  if (down) fill_with_nan(to, bytes);
  put(
      stream, [=] { std::memmove(to, from, bytes); }, down);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  if (has_faulted) return fault();
  expect_kind(Kind::kDevice, data, bytes, "clear");
  put(stream, [=] { std::memset(data, value, bytes); });
  return cudaSuccess;
}

// Streams ----------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (has_faulted) return fault();
  *stream = new CUstream_st;
  keep((*stream)->queue);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = *highest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  try {
    wait_for(stream);
  } catch (const std::exception&) {
    // Called by destructors.
  }
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (break_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  wait_for(stream);
  return has_faulted ? fault() : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (has_faulted) return fault();
  if (event->capture != nullptr && event->capture == current_capture()) {
    if (stream->capture == nullptr) {
      stream->capture = event->capture;
      stream->capture->streams.push_back(stream);
    }
    stream->last.insert(stream->last.end(), event->nodes.begin(), event->nodes.end());
    return cudaSuccess;
  }
  if (break_capture()) return failed(cudaErrorStreamCaptureIsolation);
  if (event->queue == nullptr) return cudaSuccess;
  put(stream, [queue = event->queue, end = event->end] { queue->advance(end); });
  return cudaSuccess;
}

// Events -----------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (has_faulted) return fault();
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (has_faulted) return fault();
  event->capture = stream->capture;
  event->nodes = stream->last;
  if (stream->capture != nullptr) return cudaSuccess;
  put(stream, [reached = event->reached] { *reached = Clock::now(); });
  event->queue = stream->queue;
  event->end = stream->queue->end();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (break_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  if (event->capture != nullptr) return failed(cudaErrorCapturedEvent);
  if (event->queue != nullptr) event->queue->advance(event->end);
  return has_faulted ? fault() : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(*end->reached - *begin->reached).count();
  return cudaSuccess;
}

// Graphs -----------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (has_faulted) return fault();
  if (break_capture()) return failed(cudaErrorStreamCaptureUnsupported);
  if (captures_are_refused()) return failed(cudaErrorStreamCaptureUnsupported);
  stream->capture = std::make_shared<Capture>();
  stream->capture->streams.push_back(stream);
  current_capture() = stream->capture;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::shared_ptr<Capture> capture = std::exchange(current_capture(), nullptr);
  const std::vector<std::size_t> last = stream->last;
  for (const cudaStream_t captured : capture->streams) {
    captured->capture = nullptr;
    captured->last.clear();
  }
  *graph = nullptr;
  if (capture->broken) return failed(cudaErrorStreamCaptureInvalidated);
  if (!all_before(capture->graph, last)) return failed(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->graph)};
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
  *count = graph->work.nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (has_faulted) return fault();
  *executable = new CUgraphExec_st{std::make_shared<const WorkGraph>(graph->work)};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (has_faulted) return fault();
  Work launch = [work = executable->work] { carry_out(*work); };
  if (executable->work->at_once) {
    put_at_once(stream, std::move(launch));
  } else {
    put(stream, std::move(launch));
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
