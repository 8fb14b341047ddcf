// A system that gives no page-locked memory, on the emulated GPU: one note, and the same bits.
#include "engine/device/pinned_buffer.h"
#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/support/heard_notes.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rk {
namespace {

class NoPageLocking : public testing::Test {
 protected:
  NoPageLocking() { host_gpu::set_page_locking(false); }
  ~NoPageLocking() override { host_gpu::set_page_locking(true); }

  const HeardNotes notes_;
};

TEST_F(NoPageLocking, CopiesGoThroughOrdinaryMemoryWithOneNote) {
  const CudaContext cuda(0);
  const PinnedBuffer buffers[2] = {PinnedBuffer(12), PinnedBuffer(1 << 20)};
  for (const PinnedBuffer& buffer : buffers) {
    EXPECT_FALSE(buffer.page_locked());
    const auto device = DeviceBuffer::copy_of(std::vector<float>{1, 2, 3});
    auto* values = buffer.as<float>();
    cuda.download(values, device.as<float>(), 12);
    cuda.synchronize();
    EXPECT_EQ(values[2], 3);
    values[2] = 5;
    cuda.upload(device.as<float>(), values, 12);
    EXPECT_EQ(device.values<float>()[2], 5);
  }
  ASSERT_EQ(notes_.lines.size(), 1U);
  EXPECT_TRUE(notes_.lines[0].starts_with("the system gives no page-locked memory"))
      << notes_.lines[0];
  host_gpu::set_page_locking(true);
  EXPECT_TRUE(PinnedBuffer(12).page_locked());
  EXPECT_TRUE(PinnedBuffer().page_locked());
  EXPECT_EQ(notes_.lines.size(), 1U);
}

// A captured step that copied from or to the host would fail without page-locked memory.
TEST_F(NoPageLocking, TrainingGivesTheSameBits) {
  constexpr std::int64_t kRows = 8;
  constexpr int kSide = 16;
  const Context gpu(2, Device{.cuda = true});
  for (const char* loss : {"fastap", "nsl"}) {
    SCOPED_TRACE(loss);
    TrainerOptions options = small_trainer(loss, kRows);
    options.memory_batches = options.loss.entry->kind == LossKind::kProxies ? 0 : 1;
    std::vector<double> losses[2];
    std::vector<float> values[2];
    for (const bool locking : {false, true}) {
      host_gpu::set_page_locking(locking);
      Trainer trainer(gpu, options);
      for (std::uint32_t s = 0; s < 4; ++s) {
        losses[locking].push_back(trainer.step(NoiseBatch(kRows, kSide, s).get()).loss);
      }
      trainer.download();
      values[locking].assign(trainer.parameters().values().begin(),
                             trainer.parameters().values().end());
    }
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_EQ(values[0], values[1]);
  }
  EXPECT_EQ(notes_.lines.size(), 1U);
}

TEST(HostGpu, CopiesOfTheHostAreNoPartOfACapture) {
  const CudaContext cuda(0);
  const PinnedBuffer host(8);
  const DeviceBuffer device(8);
  const auto up = [&] { cuda.upload(device.as<float>(), host.as<float>(), 8); };
  EXPECT_THROW(CudaGraph(cuda, up), DeviceError);
  const auto down = [&] { cuda.download(host.as<float>(), device.as<float>(), 8); };
  EXPECT_THROW(CudaGraph(cuda, down), DeviceError);
  EXPECT_NO_THROW(cuda.upload(device.as<float>(), host.as<float>(), 8));
}

}  // namespace
}  // namespace rk
