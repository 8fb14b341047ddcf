// `train` on the emulated GPU, where a step is under way while the run goes on: wherever it is
// stopped, nothing may be lost, and nothing counted twice.
#include "engine/base/random.h"
#include "engine/system/read_file.h"
#include "engine/system/signals.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/run_command.h"
#include "tests/support/folder_test.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/words.h"
#include "tools/train/train_command.h"
#include "training/memory_fit.h"
#include "weights/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr int kSteps = 8;  // in two epochs

// A group of one in which a signal comes during the n-th call of all_reduce_max(): in front of a
// step, behind one, before a save.
class InterruptedGroup final : public ProcessGroup {
 public:
  explicit InterruptedGroup(int calls) : calls_(calls) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce_sum(std::span<float>) override {}
  int all_reduce_max(int value) override {
    if (--calls_ == 0) take_signal(SIGTERM);
    return value;
  }
  int leave(int exit_code) override { return exit_code; }

 protected:
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::ranges::copy(mine, all.begin());
  }
  void wait_for_all() override {}

 private:
  int calls_;
};

class GpuTrainRun : public FolderTest<TemporaryFolder> {
 protected:
  static constexpr int kRefused = 77;

  // Trains in a process of its own whose GPU has `bytes` of memory besides its libraries'; returns
  // the exit code.
  int train_within(const std::string& run, std::size_t bytes,
                   const std::vector<std::string>& more) const {
    const pid_t child = ::fork();
    if (child == 0) {
      host_gpu::set_free_bytes(host_gpu::kOfLibraries + bytes);
      ::_exit(train_here(in(run), 0, more));
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Trains in a process of its own, because a signal that came stays. Returns whether the run ended
  // by itself, not by the signal that comes in call number `calls` (0: none does).
  bool train(const std::string& run, int calls, const std::vector<std::string>& more = {}) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::vector<std::string> words =
          joined({"--test-data", "none", "--batch", "16", "--epochs", "2", "--memory", "1"}, more);
      ::_exit(train_here(in(run), calls, words));
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 128 + SIGTERM) << status;
    return WEXITSTATUS(status) == 0;
  }
  std::vector<std::byte> last(const std::string& run) const {
    return read_file(in(run) + "/last.h5", std::size_t{1} << 30);
  }

  static int train_here(const std::string& out, int calls, const std::vector<std::string>& more) {
    const std::vector<std::string> words =
        joined({"--data", "glyphs:classes=8,alphabets=2,test_classes=6,images=8,size=16", "--arch",
                "resnet20", "--dim", "16", "--image-size", "16", "--resize", "16", "--loss",
                "smooth_ap:tau=0.1", "--out", out, "--resume", "auto"},
               more);
    try {
      InterruptedGroup group(calls);
      CommonOptions common;
      common.program = "train";
      common.device = "cuda:0";
      common.threads = 1;
      common.quiet = true;
      common.processes = &group;
      run_command(*make_train(), common, words);
      return 0;
    } catch (const Interrupted&) {
      return interrupted_exit_code();
    } catch (const TooLittleMemory& little) {
      fmt::print(stderr, "{}\n", little.what());
      return kRefused;
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      return 1;
    }
  }
};

TEST_F(GpuTrainRun, StoppedAnywhereItEndsInTheSameBits) {
  ASSERT_TRUE(train("straight", 0));
  const RunState straight = Checkpoint(in("straight") + "/last.h5").run();
  EXPECT_EQ(straight.step, kSteps);
  EXPECT_EQ(straight.epoch, 2);
  // Four of the places in front of and behind each step.
  CounterRandom random(random_seed(), 0, 0);
  for (int trial = 0; trial < 4; ++trial) {
    const int calls = 1 + static_cast<int>(random.below(2 * kSteps));
    SCOPED_TRACE(calls);
    const std::string run = std::to_string(trial);
    ASSERT_FALSE(train(run, calls));
    ASSERT_TRUE(train(run, 0));
    EXPECT_TRUE(last(run) == last("straight"));
  }
}

// Whatever memory the GPU has (cuBLAS takes 32 MiB of it): either a run says before its first step
// that it does not fit, or it has room to its end, evaluation included, if need be by taking a
// batch in parts. The sizes drawn lie on both sides of where a batch of one fits; the first and the
// last are far from there, so that each run of this test sees both ends.
TEST_F(GpuTrainRun, WhatBeginsHasRoomToItsEnd) {
  constexpr std::size_t kMegabytes[] = {39, 44, 50, 57, 65, 112};
  CounterRandom random(random_seed(), 0, 0);
  int refused = 0, whole = 0, parts = 0;
  for (std::size_t trial = 0; trial < std::size(kMegabytes); ++trial) {
    const auto megabytes = kMegabytes[trial] + static_cast<std::size_t>(random.below(3));
    SCOPED_TRACE(fmt::format("{} MiB", megabytes));
    const std::string run = std::to_string(trial);
    const int code =
        train_within(run, megabytes << 20,
                     {"--per-class", "8", "--batches", "2", "--epochs", "1"});  // 64 a batch
    EXPECT_TRUE(code == 0 || code == kRefused) << code;
    if (code == kRefused) ++refused;
    if (code != 0) continue;
    ++(holds(file_text(in(run + "/settings.toml")), "\nchunk = 0") ? whole : parts);
  }
  fmt::print("{} refused, {} in parts, {} whole\n", refused, parts, whole);
  EXPECT_GT(refused, 0);
  EXPECT_GT(parts, 0);
  EXPECT_GT(whole, 0);
}

TEST_F(GpuTrainRun, APrecisionThatNobodyNamedIsSaidToBeSlow) {
  const std::vector<std::string> run = {"--test-data", "none", "--batch",  "16",
                                        "--batches",   "1",    "--epochs", "1"};
  const auto notes_of = [&](const std::string& out, const std::vector<std::string>& more) {
    HeardNotes notes;
    EXPECT_EQ(train_here(in(out), 0, joined(run, more)), 0);
    return fmt::format("{}", fmt::join(notes.lines, "\n"));
  };
  const std::string slow = "--precision fp32 keeps off the GPU's matrix units";
  EXPECT_TRUE(holds(notes_of("unnamed", {}), slow));
  EXPECT_FALSE(holds(notes_of("named", {"--precision", "fp32"}), slow));
}

// Each save waits for the step under way, and changes nothing.
TEST_F(GpuTrainRun, SavesInBetweenChangeNoBit) {
  ASSERT_TRUE(train("straight", 0));
  ASSERT_TRUE(train("saved", 0, {"--save-every", "0.000001"}));
  const Checkpoint a(in("straight") + "/last.h5"), b(in("saved") + "/last.h5");
  EXPECT_EQ(a.run().history, b.run().history);
  EXPECT_EQ(a.run().step, b.run().step);
  EXPECT_EQ(a.network(), b.network());
}

}  // namespace
}  // namespace rk
