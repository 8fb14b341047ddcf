// The GPU made of the host finds the mistakes that it is there for.
#include "engine/cuda_context.h"
#include "engine/device_buffer.h"
#include "engine/error.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace rk
