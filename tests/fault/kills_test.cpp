// A run that is killed at random moments, as by a batch system or a power cut, and resumed until it
// ends must leave the same files to the last bit: under every sampler, with a loss that keeps
// proxies, in chunks, with memory columns, with saves between epochs alone and as several
// processes. Each way of training is killed RK_KILLS times (`make test-kills KILLS=100`); if a run
// ends before that, another one begins.
#include "tests/fault/amount.h"
#include "tests/support/messages.h"
#include "tests/support/mpi_run.h"
#include "tests/support/random_seed.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"

#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

namespace rk {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Way {
  std::string name;
  std::vector<std::string> flags;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

std::string name_of(const testing::TestParamInfo<Way>& way) { return way.param.name; }

class Kills : public TrainProgram, public testing::WithParamInterface<Way> {
 protected:
  // Two epochs of three steps, each of which is saved unless the flags say otherwise.
  Words training(const std::string& out) const {
    return command(out,
                   with_flags({"--save-every", "0.000001", "--resume", "auto"}, GetParam().flags));
  }
  static int wanted() { return amount("RK_KILLS", 1); }
  void expect_same() const {
    EXPECT_TRUE(same_file("straight/last.h5", "killed/last.h5"));
    EXPECT_TRUE(same_file("straight/best.h5", "killed/best.h5"));
    EXPECT_EQ(metrics("killed").size(), 3U);
    for (const auto& entry : fs::directory_iterator(in("killed"))) {
      EXPECT_FALSE(holds(entry.path().filename().string(), ".tmp.")) << entry.path();
    }
    fs::remove_all(in("killed"));
  }
  // Starts the run until it has been killed `wanted()` times. `attempt` makes one start and returns
  // true if it was killed, false if the run ended. `whole` is the last start, undisturbed.
  template <class Attempt> void kill_and_compare(const Attempt& attempt, const Words& whole) const {
    int kills = 0, through = 0;
    while (kills < wanted() && !HasFailure()) {
      if (attempt()) {
        ++kills;
      } else {
        ++through;
        expect_same();
      }
    }
    const Finished done = run(whole);
    EXPECT_EQ(done.code, 0) << done.err;
    expect_same();
    std::printf("%d kills, %d runs, all bit-equal\n", kills, through + 1);
  }
};

TEST_P(Kills, EndInTheSameBits) {
  const auto start = Clock::now();
  ASSERT_EQ(run(training("straight")).code, 0);
  const auto whole = std::chrono::duration_cast<milliseconds>(Clock::now() - start).count();
  std::mt19937 random(static_cast<unsigned>(random_seed()));
  kill_and_compare(
      [&] {
        ChildProcess child(training("killed"), folder_.path().string());
        std::this_thread::sleep_for(milliseconds(std::uniform_int_distribution(1L, whole)(random)));
        child.send(SIGKILL);
        const Finished end = child.wait();
        EXPECT_TRUE(end.code == 128 + SIGKILL || end.code == 0) << end.code << ": " << end.err;
        return end.code != 0;
      },
      training("killed"));
}

INSTANTIATE_TEST_SUITE_P(
    Under, Kills,
    testing::Values(
        Way{"saved_after_epochs", {"--save-every", "0"}}, Way{"pk_momentum", {"--momentum", "0.9"}},
        Way{"category_adam", {"--sampler", "category:per_pair=2", "--optimizer", "adam"}},
        Way{"random_classes_cosine", {"--sampler", "random_classes", "--schedule", "cosine"}},
        Way{"random_proxies", {"--sampler", "random", "--loss", "nsl"}},
        Way{"proxy_anchor", {"--loss", "proxy_anchor", "--momentum", "0.9"}},
        Way{"chunks", {"--chunk", "4"}},
        Way{"memory_columns_in_chunks", {"--loss", "fastap", "--memory", "3", "--chunk", "8"}}),
    name_of);

// Several processes: one of them dies at a random call, and mpiexec ends the others.
class KillsOfProcesses : public Kills {
 protected:
  void SetUp() override {
    if (!has_mpiexec()) GTEST_SKIP() << "this build has no MPI (libopenmpi-dev)";
  }
  Words started(const std::string& out, int victim, const std::string& faults) const {
    const auto process = [&](int rank) {
      return rank == victim ? with_faults(training(out), faults) : training(out);
    };
    return together(process(0), process(1));
  }
};

TEST_P(KillsOfProcesses, EndInTheSameBits) {
  ASSERT_EQ(run(started("straight", -1, "")).code, 0);
  std::mt19937 random(static_cast<unsigned>(random_seed()));
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  kill_and_compare(
      [&] {
        const char* calls[] = {"read", "open", "memory", "write", "fsync", "rename"};
        const int victim = below(2);
        // The second process never saves: only the first three calls occur there.
        const char* call = calls[below(victim == 0 ? 6 : 3)];
        const Finished end =
            run(started("killed", victim, fmt::format("{},{},1,s{},", call, below(60), SIGKILL)));
        // mpiexec answers as the process that died.
        EXPECT_TRUE(end.code == 128 + SIGKILL || end.code == 0) << end.code << ": " << end.err;
        return end.code != 0;
      },
      started("killed", -1, ""));
}

INSTANTIATE_TEST_SUITE_P(Two, KillsOfProcesses,
                         testing::Values(Way{"processes", {"--threads", "1", "--bn", "train"}}),
                         name_of);

}  // namespace
}  // namespace rk
