// What is promised about the order of a GPU's work: a card may run streams beside one another, and
// the emulated GPU carries each one's work out as early or as late as CUDA allows.
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/error.h"
#include "engine/device/cuda/graph.h"
#include "engine/device/cuda/mark.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/cuda/upload.h"
#include "engine/device/pinned_buffer.h"
#include "tests/cuda/gpu.h"
#include "tests/support/random_seed.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

namespace rk {
namespace {

using StreamsTest = OnGpu;

std::vector<int> numbers(std::int64_t count, int first) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::size_t bytes_of(const std::vector<int>& values) { return values.size() * sizeof(int); }

// What a stream's work reads as each batch, and as the one before where it was restored.
TEST_F(StreamsTest, StagedBatchesArriveInOrder) {
  constexpr std::int64_t kLargest = 5000, kBatches = 12;
  const std::uint64_t seed = random_seed();
  for (std::uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    CounterRandom random(seed, 0, round);
    const CudaContext cuda(0);
    DeviceUpload upload(cuda, kLargest * sizeof(int));
    const auto read = DeviceBuffer::of<int>(2 * kBatches * kLargest);
    std::vector<int> expected(2 * kBatches * kLargest);
    cuda.clear(read.as<int>(), read.bytes());
    std::vector<std::vector<int>> batches;
    for (int b = 0; b < kBatches; ++b) {
      batches.push_back(numbers(1 + random.below(kLargest), 100'000 * (b + 1)));
    }
    std::int64_t slot = 0;
    const auto read_now = [&](const std::vector<int>& batch) {
      cuda.copy(read.as<int>() + slot * kLargest, upload.data(), bytes_of(batch));
      std::ranges::copy(batch, expected.begin() + slot++ * kLargest);
    };
    const auto stage = [&](std::size_t b) {
      std::vector<int> passed = batches[b];
      upload.stage(std::as_bytes(std::span(passed)));
      std::ranges::fill(passed, -1);
    };
    stage(0);
    for (std::size_t b = 0; b < kBatches; ++b) {
      upload.take();
      read_now(batches[b]);
      if (b > 0 && random.below(3) == 0) {
        upload.take_back();
        read_now(batches[b - 1]);
      }
      if (b + 1 < kBatches) stage(b + 1);
    }
    ASSERT_TRUE(read.values<int>() == expected);
  }
}

// The default stream, which blocking copies take, waits for no other. Each thread of the emulated
// GPU has one of its own.
TEST_F(StreamsTest, ABlockingCopyIsDoneWhenItReturns) {
  for (int round = 0; round < 20; ++round) {
    std::thread([round] {
      const CudaContext cuda(0);
      const std::vector<int> values = numbers(100'000, round);
      const auto device = DeviceBuffer::copy_of(values);
      const auto copy = DeviceBuffer::of<int>(100'000);
      cuda.copy(copy.as<int>(), device.as<int>(), device.bytes());
      EXPECT_TRUE(copy.values<int>() == values) << round;
    }).join();
  }
}

// What was downloaded before the mark has arrived.
TEST_F(StreamsTest, AMarkIsBehindAllWorkBeforeIt) {
  constexpr std::int64_t kCount = 100'000;
  for (int round = 0; round < 30; ++round) {
    const CudaContext cuda(0);
    DeviceMark mark(cuda);
    mark.wait();
    const auto device = DeviceBuffer::of<int>(kCount);
    const PinnedBuffer up(device.bytes()), down(device.bytes());
    for (int step = 0; step < 3; ++step) {
      const std::vector<int> values = numbers(kCount, step);
      mark.wait();  // for the copy from `up`
      std::ranges::copy(values, up.as<int>());
      cuda.upload(device.as<int>(), up.as<int>(), device.bytes());
      cuda.download(down.as<int>(), device.as<int>(), device.bytes());
      mark.set();
      cuda.clear(device.as<int>(), device.bytes());
      mark.wait();
      ASSERT_TRUE(std::equal(values.begin(), values.end(), down.as<int>()));
    }
  }
}

TEST_F(StreamsTest, ATimerWaitsForWhatItMeasures) {
  const CudaContext cuda(0);
  DeviceTimer timer(cuda);
  const auto device = DeviceBuffer::of<int>(1 << 20);
  const PinnedBuffer host(device.bytes());
  for (int round = 0; round < 30; ++round) {
    timer.start();
    cuda.clear(device.as<int>(), device.bytes());
    cuda.download(host.as<int>(), device.as<int>(), device.bytes());
    EXPECT_GT(timer.stop(), 0);
    ASSERT_TRUE(
        std::all_of(host.as<int>(), host.as<int>() + (1 << 20), [](int v) { return v == 0; }));
    *host.as<int>() = 1;
  }
}

// A stream beside another one, which it may take over from and give back to.
class Beside {
 public:
  Beside() {
    check_cuda(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "event");
    check_cuda(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming), "event");
  }
  ~Beside() {
    cudaEventDestroy(fork_);
    cudaEventDestroy(join_);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  const CudaContext& context() const { return context_; }
  void take_over(const CudaContext& from) {
    check_cuda(cudaEventRecord(fork_, from.stream()), "event");
    check_cuda(cudaStreamWaitEvent(context_.stream(), fork_, 0), "event");
  }
  void mark() { check_cuda(cudaEventRecord(join_, context_.stream()), "event"); }
  void give_back(const CudaContext& to) {
    check_cuda(cudaStreamWaitEvent(to.stream(), join_, 0), "event");
  }

 private:
  CudaContext context_{0};
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
};

// A graph holds the order between streams that its capture saw, and no other. Each capture has
// streams of its own: what becomes of those of a capture that failed is not documented.
TEST_F(StreamsTest, ACaptureTakesInTheStreamsThatReturnToIt) {
  const CudaContext cuda(0);
  Beside beside;
  const auto a = DeviceBuffer::copy_of(numbers(1000, 1));
  const auto b = DeviceBuffer::copy_of(numbers(1000, 5000));
  const auto c = DeviceBuffer::of<int>(1000);
  const CudaGraph graph(cuda, [&] {
    cuda.copy(b.as<int>(), a.as<int>(), a.bytes());
    beside.take_over(cuda);
    beside.context().copy(c.as<int>(), b.as<int>(), a.bytes());
    beside.mark();
    beside.give_back(cuda);
    cuda.clear(a.as<int>(), a.bytes());
  });
  EXPECT_EQ(graph.nodes(), 3U);
  EXPECT_EQ(a.values<int>(), numbers(1000, 1)) << "a capture carries nothing out";
  graph.launch();
  EXPECT_EQ(c.values<int>(), numbers(1000, 1));
  EXPECT_EQ(a.values<int>(), std::vector<int>(1000));
}

TEST_F(StreamsTest, ACaptureFailsIfAStreamDoesNotReturn) {
  const CudaContext cuda(0);
  const auto a = DeviceBuffer::copy_of(numbers(1000, 1));
  {
    Beside beside;  // gone before anything waits: it might still be taken for captured
    EXPECT_THROW(CudaGraph(cuda,
                           [&] {
                             beside.take_over(cuda);
                             beside.context().clear(a.as<int>(), a.bytes());
                           }),
                 DeviceError);
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(a.values<int>(), numbers(1000, 1));
}

}  // namespace
}  // namespace rk
