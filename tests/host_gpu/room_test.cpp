// A batch that does not fit in the GPU's memory is refused before the memory is asked for, and the
// message names what would fit.
#include "engine/base/error.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/support/messages.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"

#include <gtest/gtest.h>

#include <string>

namespace rk {
namespace {

TEST(HostGpuRoom, WhatDoesNotFitIsSaidWithWhatWould) {
  TrainerOptions options = small_trainer("fastap", 64);
  options.model.arch = "resnet18";
  options.model.crop = options.model.resize = 64;
  const Context gpu(2, Device{.cuda = true});
  host_gpu::set_free_bytes(std::size_t{745} << 20);
  std::string message;
  try {
    Trainer trainer(gpu, options);
  } catch (const DeviceError& error) {
    message = error.what();
  }
  host_gpu::set_free_bytes(std::size_t{1} << 46);
  EXPECT_TRUE(holds(message, "64 images at a time need"));
  EXPECT_TRUE(holds(message, "use --chunk"));
}

}  // namespace
}  // namespace rk
