// The emulated GPU must find the mistakes that it is there for.
#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "engine/device/cuda/mark.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/cuda/upload.h"
#include "engine/device/pinned_buffer.h"
#include "kernels/blocks/elementwise_block.h"
#include "tests/host_gpu/cuda/device.h"
#include "tests/host_gpu/kernels/launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace rk {
namespace {

TEST(HostGpu, CopiesSayWhenTheyGoTheWrongWay) {
  const CudaContext cuda(0);
  const auto device = DeviceBuffer::of<float>(8);
  const PinnedBuffer pinned(8 * sizeof(float));
  float other[8] = {};
  float* d = device.as<float>();
  auto* p = pinned.as<float>();
  EXPECT_NO_THROW(cuda.upload(d, p, 32));
  EXPECT_NO_THROW(cuda.download(p, d + 4, 16));
  EXPECT_NO_THROW(cuda.copy(d, d + 4, 16));
  EXPECT_THROW(cuda.upload(p, d, 32), DeviceError);
  EXPECT_THROW(cuda.upload(d, other, 32), DeviceError);
  EXPECT_THROW(cuda.upload(d + 1, p, 32), DeviceError);
  EXPECT_THROW(cuda.download(d, p, 32), DeviceError);
  EXPECT_THROW(cuda.download(other, d, 32), DeviceError);
  EXPECT_THROW(cuda.copy(d, p, 32), DeviceError);
  EXPECT_THROW(cuda.copy(p, d, 32), DeviceError);
}

TEST(HostGpu, WhatWasNotWaitedForIsNotThere) {
  const CudaContext cuda(0);
  const auto device = DeviceBuffer::copy_of(std::vector<float>{1, 2, 3});
  const PinnedBuffer pinned(3 * sizeof(float));
  auto* values = pinned.as<float>();
  cuda.download(values, device.as<float>(), 3 * sizeof(float));
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[2]));
  cuda.synchronize();
  EXPECT_EQ(values[2], 3);
}

TEST(HostGpu, FreshMemoryIsNaN) {
  for (const float value : DeviceBuffer::of<float>(100).values<float>()) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// As with a CUDA graph: nothing is carried out during the capture, and a launch reads device memory
// anew, but not the arguments it was captured with.
TEST(HostGpu, AReplayHasTheArgumentsOfItsCapture) {
  const CudaContext cuda(0);
  const auto factor = DeviceBuffer::copy_of(std::vector<float>{2});
  const auto values = DeviceBuffer::copy_of(std::vector<float>{1, 1, 1});
  std::int64_t count = 2;
  const auto work = [&] {
    launch(Scale{.count = count, .factor = factor.as<float>(), .values = values.as<float>()},
           cuda.stream());
  };
  work();
  const CudaGraph graph(cuda, work);
  EXPECT_EQ(graph.nodes(), 1U);
  EXPECT_EQ(values.values<float>(), (std::vector<float>{2, 2, 1}));
  count = 3;
  graph.launch();
  EXPECT_EQ(values.values<float>(), (std::vector<float>{4, 4, 1}));
  const PinnedBuffer three(sizeof(float));
  *three.as<float>() = 3;
  cuda.upload(factor.as<float>(), three.as<float>(), sizeof(float));
  graph.launch();
  EXPECT_EQ(values.values<float>(), (std::vector<float>{12, 12, 1}));
}

// After an illegal address nothing runs any more: no call may take that for a refusal.
TEST(HostGpu, EveryCallTellsOfAFault) {
  const CudaContext cuda(0);
  auto device = DeviceBuffer::of<float>(4);
  DeviceMark mark(cuda);
  DeviceTimer timer(cuda);
  DeviceUpload upload(cuda, 16);
  float host[4] = {};
  const auto bytes = std::as_bytes(std::span(host));
  upload.stage(bytes);
  mark.set();
  timer.start();
  host_gpu::fault(true);
  EXPECT_THROW(cuda.synchronize(), DeviceFault);
  EXPECT_THROW(device.upload(host, sizeof(host)), DeviceFault);
  EXPECT_THROW(device.download(host, sizeof(host)), DeviceFault);
  EXPECT_THROW(mark.wait(), DeviceFault);
  EXPECT_THROW(timer.stop(), DeviceFault);
  EXPECT_THROW((upload.stage(bytes), upload.stage(bytes)), DeviceFault);
  EXPECT_THROW(DeviceBuffer::of<float>(4), DeviceFault);
  EXPECT_THROW(cuda.copy(device.as<float>(), device.as<float>(), sizeof(host)), DeviceFault);
  EXPECT_THROW(mark.set(), DeviceFault);
  EXPECT_THROW(timer.start(), DeviceFault);
  EXPECT_THROW(CudaGraph(cuda, [] {}), DeviceFault);
  host_gpu::fault(false);
  EXPECT_NO_THROW(cuda.synchronize());
}

struct NewKernel {
  int blocks() const { return 1; }
  template <class Block> void operator()(const Block&) const {}
};

TEST(HostGpu, WhatMayNotBeCapturedIsRefused) {
  const CudaContext cuda(0), other(0);
  auto device = DeviceBuffer::of<float>(4);
  float host[4] = {};
  const auto refused = [&](const std::function<void()>& work) {
    EXPECT_THROW(CudaGraph(cuda, work), DeviceError);
    EXPECT_NO_THROW(device.upload(host, sizeof(host)));  // the capture has ended
  };
  refused([] { DeviceBuffer::of<float>(1); });
  refused([] { const PinnedBuffer buffer(4); });
  refused([&] { device.upload(host, sizeof(host)); });
  refused([&] { device.download(host, sizeof(host)); });
  refused([&] { cuda.synchronize(); });
  refused([&] { other.clear(device.as<float>(), 4); });
  // For the first time: a kernel, and a product of a size that no other test has.
  float* const d = device.as<float>();
  refused([&] { launch(NewKernel(), cuda.stream()); });
  const auto multiply = [&](std::int64_t k) {
    const Factor<float> row{d, 1, k, k};
    cuda.gemm({.a = row, .b = transposed(row), .c = {d + 3, 1, 1, 1}});
  };
  multiply(1);
  EXPECT_NO_THROW(CudaGraph(cuda, [&] { multiply(1); }));
  refused([&] { multiply(1'000'003); });
}

}  // namespace
}  // namespace rk
