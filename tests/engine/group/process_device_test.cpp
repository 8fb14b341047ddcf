// Which GPU each of several processes takes, on made-up machines.
#include "engine/group/process_device.h"

#include "engine/base/error.h"
#include "tests/support/thread_group.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

GpuReport machine_with(int cards) {
  GpuReport report;
  report.built = true;
  report.runtime = 13000;
  report.driver = 13000;
  for (int i = 0; i < cards; ++i) report.cards.push_back({"NVIDIA H200", 90, 1});
  if (cards == 0) report.error = {kCudaNoDevice, "no CUDA-capable device is detected"};
  report.start = [](int) { return GpuReport::Error(); };
  return report;
}

// What each process took or threw, by rank. `machines[r]` is where it runs.
std::vector<std::string> chosen(const std::string& device, const std::vector<int>& machines,
                                const std::vector<int>& cards) {
  std::vector<std::string> said(machines.size());
  ThreadGroup::run(static_cast<int>(machines.size()), [&](ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    try {
      const DeviceChoice choice = choose_device(parse_device(device), machine_with(cards[rank]),
                                                group, static_cast<std::uint64_t>(machines[rank]));
      said[rank] = choice.device.name() + (choice.device.cuda ? "" : ": " + choice.why);
    } catch (const Error& error) {
      said[rank] = fmt::format("{} {}", static_cast<int>(error.exit_code()), error.what());
    } catch (const ReportedByAnother&) {
      said[rank] = "in silence";
    }
    if (group.ended_together()) said[rank] += ", with the others";
  });
  return said;
}

using Said = std::vector<std::string>;

TEST(ProcessDevice, EachTakesItsOwnGpuOfItsMachine) {
  for (const char* device : {"auto", "cuda"}) {
    EXPECT_EQ(chosen(device, {7, 7, 9, 9}, {2, 2, 2, 2}),
              (Said{"cuda:0", "cuda:1", "cuda:0", "cuda:1"}));
    EXPECT_EQ(chosen(device, {7, 9, 7}, {4, 4, 4}), (Said{"cuda:0", "cuda:0", "cuda:1"}));
  }
}

TEST(ProcessDevice, AProcessThatSeesOneGpuTakesThat) {
  EXPECT_EQ(chosen("cuda", {7, 7, 7}, {1, 1, 1}), (Said{"cuda:0", "cuda:0", "cuda:0"}));
}

TEST(ProcessDevice, SumsAreThoseOfAMachine) {
  const std::vector<std::uint64_t> machines = {7, 9, 7};
  std::vector<std::int64_t> sums(machines.size());
  ThreadGroup::run(3, [&](ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    sums[rank] = sum_on_machine(group, std::int64_t{1} << (40 + rank), machines[rank]);
  });
  constexpr std::int64_t kOne = std::int64_t{1} << 40;
  EXPECT_EQ(sums, (std::vector<std::int64_t>{5 * kOne, 2 * kOne, 5 * kOne}));
}

TEST(ProcessDevice, AProcessAloneChoosesAsIfThereWereNoGroup) {
  EXPECT_EQ(chosen("cuda:3", {7}, {4}), (Said{"cuda:3"}));
  EXPECT_EQ(chosen("auto", {7}, {4}), (Said{"cuda:0"}));
}

TEST(ProcessDevice, OneWithoutAGpuLeavesAllOnTheCpu) {
  const Said said = chosen("auto", {7, 9}, {1, 0});
  EXPECT_EQ(said[0], "cpu: process 1 has no GPU");
  EXPECT_EQ(said[1], "cpu: the NVIDIA driver finds no GPU; see that nvidia-smi lists one");
}

// Only the process with the reason reports it; the others end silently with the same exit code.
TEST(ProcessDevice, AskedForOneWithoutAGpuEndsAll) {
  EXPECT_EQ(chosen("cuda", {7, 7, 7}, {2, 2, 2}),
            (Said{"in silence, with the others", "in silence, with the others",
                  "5 --device cuda: 3 processes were started on a machine with 2 GPUs; start as "
                  "many as it has GPUs, with the others"}));
}

TEST(ProcessDevice, AnIndexIsForOneProcessAMachine) {
  EXPECT_EQ(chosen("cuda:1", {7, 9}, {2, 2}), (Said{"cuda:1", "cuda:1"}));
  const std::string said =
      "2 --device cuda:1: 2 processes of a machine would share one GPU; use --device cuda, which "
      "gives each its own";
  EXPECT_EQ(chosen("cuda:1", {7, 7, 9}, {2, 2, 2}), (Said{said, said, said}));
}

TEST(ProcessDevice, TheCpuIsEverybodys) {
  EXPECT_EQ(chosen("cpu", {7, 7}, {0, 2}), (Said{"cpu: asked for", "cpu: asked for"}));
}

TEST(ProcessDevice, AMachineKnowsItself) {
  EXPECT_EQ(machine_id(), machine_id());
  EXPECT_NE(machine_id(), 0U);
}

}  // namespace
}  // namespace rk
