// A batch that does not fit in the GPU's memory is refused before the memory is asked for, and the
// message names what would fit.
#include "engine/base/error.h"
#include "tests/host_gpu/cuda/memory.h"
#include "training/trainer.h"

#include <gtest/gtest.h>

#include <string>

namespace rk {
namespace {

TEST(HostGpuRoom, WhatDoesNotFitIsSaidWithWhatWould) {
  TrainerOptions options;
  options.model.arch = "resnet18";
  options.model.dim = 8;
  options.model.crop = options.model.resize = 64;
  options.loss = parse_loss("fastap");
  options.schedule.rate = 1e-3;
  options.batch = 64;
  const Context gpu(2, Device{.cuda = true});
  host_gpu::set_free_bytes(std::size_t{745} << 20);
  std::string message;
  try {
    Trainer trainer(gpu, options);
  } catch (const DeviceError& error) {
    message = error.what();
  }
  host_gpu::set_free_bytes(std::size_t{1} << 46);
  EXPECT_NE(message.find("64 images at a time need"), std::string::npos) << message;
  EXPECT_NE(message.find("use --chunk"), std::string::npos) << message;
}

}  // namespace
}  // namespace rk
