// Lets one system call of a training run fail, each in turn: the run must go on, or end with one
// line and the right exit code; and whatever it leaves behind, --resume auto must lead to the bits
// of an undisturbed run. RK_FAULTED_CALLS: how many combinations of failure and situation to draw,
// with a dozen calls each; 0: every call of every combination (`make test-faults`).
#include "tests/fault/amount.h"
#include "tests/support/random_seed.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "weights/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;

struct Kind {
  std::string call;
  int error;
  std::string name;
  bool of_the_run;  // fails only calls on files in the run's folder, not on every file read
  // Made for the process that parses checkpoints alone: a fresh run, which reads none, has no call.
  bool of_the_parser = false;
};

const Kind kKinds[] = {{"write", ENOSPC, "ENOSPC", true},
                       {"write", EIO, "EIO", true},
                       {"write", EFBIG, "EFBIG", true},
                       {"write", EDQUOT, "EDQUOT", true},
                       {"fsync", EIO, "EIO", true},
                       {"fsync", ENOSPC, "ENOSPC", true},
                       {"rename", EIO, "EIO", true},
                       {"rename", ENOSPC, "ENOSPC", true},
                       {"flock", ENOLCK, "ENOLCK", true},
                       {"open", EMFILE, "EMFILE", false},
                       {"open", ESTALE, "ESTALE", false},
                       {"open", ENOSPC, "ENOSPC", true},
                       {"read", EIO, "EIO", false},
                       {"read", ESTALE, "ESTALE", false},
                       {"mmap", ENOMEM, "ENOMEM", false, true},
                       {"memory", ENOMEM, "ENOMEM", false},
                       {"fork", EAGAIN, "EAGAIN", false, true},
                       {"pthread_create", EAGAIN, "EAGAIN", false}};

class FailingCalls : public TrainProgram {
 protected:
  // 16 pictures and 4 held out, one step an epoch.
  Words fresh(const std::string& out, const Words& more = {}) const {
    if (!fs::exists(in("few"))) {
      folder_.classes("few/train/c", 4, 4);
      folder_.classes("few/test/t", 2, 2);
    }
    const Words words = joined(
        {"--data", "folder:" + in("few"), "--cache", "0", "--workers", "1", "--momentum", "0.9"},
        more);
    return command(out, words, 1);
  }
  std::string faults(const Kind& kind, long number) const {
    const std::string part = kind.of_the_run ? in("run/") : in("");
    const bool on_files = kind.call == "open" || kind.call == "read" || kind.of_the_run;
    return fmt::format("{},{},1,{},{}", kind.call, number, kind.error, on_files ? part : "");
  }
  // A new run, or one that is resumed after the first of its two epochs.
  Words situation(bool goes_on) const {
    return goes_on ? resuming("run", {"--epochs", "2"}) : fresh("run");
  }
  void prepare(bool goes_on) const {
    fs::remove_all(in("run"));
    if (goes_on) fs::copy(in("half"), in("run"));
  }
  // How many calls of a run a fault counted, and how many failed, there or in the parser's process.
  struct Counts {
    int seen = -1, failed = -1;
  };
  Finished run_counting(const Kind& kind, bool goes_on, long number, Counts& counts) const {
    prepare(goes_on);
    fs::remove(in("counts"));
    const Words words = with_faults(situation(goes_on), faults(kind, number));
    const Finished end = run(joined({"/usr/bin/env", "RK_COUNTS=" + in("counts")}, words));
    std::ifstream(in("counts")) >> counts.seen >> counts.failed;
    return end;
  }
  int calls_of(const Kind& kind, bool goes_on) const {
    Counts counts;
    const Finished end = run_counting(kind, goes_on, 1'000'000'000, counts);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(counts.failed, 0);
    EXPECT_EQ(counts.seen > 0, goes_on || !kind.of_the_parser)
        << kind.call << (goes_on ? ", resumed" : ", fresh");
    return counts.seen;
  }
  void fail_one(const Kind& kind, bool goes_on, int number) {
    SCOPED_TRACE(fmt::format("{}, {} {}, call {}", goes_on ? "resumed" : "fresh", kind.call,
                             kind.name, number));
    Counts counts;
    const Finished end = run_counting(kind, goes_on, number, counts);
    EXPECT_GE(counts.failed, 1);
    const std::regex line("(^|\n)error: ");
    const auto lines = std::distance(std::sregex_iterator(end.err.begin(), end.err.end(), line),
                                     std::sregex_iterator());
    EXPECT_FALSE(holds(end.err, "internal")) << end.err;
    if (end.code == 0) {
      EXPECT_EQ(lines, 0) << end.err;
    } else {
      ++ended_[kind.call];
      EXPECT_TRUE(end.code == 3 || end.code == 5) << end.code << end.err;
      EXPECT_EQ(lines, 1) << end.err;
      const Finished done = run(fresh("run", {"--resume", "auto"}));
      EXPECT_EQ(done.code, 0) << end.err << done.err;
    }
    // The checkpoint that it goes on from is whole, whatever the system makes of it.
    EXPECT_FALSE(holds(end.err, "skipped: ")) << end.err;
    EXPECT_TRUE(same_file("straight/last.h5", "run/last.h5")) << end.err;
    const auto best_epoch = [&](const std::string& name) {
      return Checkpoint(in(name + "/best.h5")).run().epoch;
    };
    EXPECT_EQ(best_epoch("run"), best_epoch("straight")) << end.err;
    EXPECT_EQ(metrics("run").size(), 3U);
    for (const auto& entry : fs::directory_iterator(in("run"))) {
      EXPECT_FALSE(holds(entry.path().filename().string(), ".tmp.")) << entry.path();
    }
    ++tried_;
  }

  int tried_ = 0;
  std::map<std::string, int> ended_;  // runs, by the call that failed
};

TEST_F(FailingCalls, EndInOneLineOrInNoneAndNothingIsLost) {
  ASSERT_EQ(run(fresh("straight")).code, 0);
  ASSERT_EQ(run(fresh("half", {"--epochs", "1"})).code, 0);
  if (const int drawn = amount("RK_FAULTED_CALLS", 3); drawn > 0) {
    constexpr std::size_t kDozen = 12;
    std::mt19937 random(static_cast<unsigned>(random_seed()));
    for (int i = 0; i < drawn; ++i) {
      const Kind& kind = kKinds[random() % std::size(kKinds)];
      const bool goes_on = kind.of_the_parser || random() % 2 == 1;
      std::vector<int> numbers(static_cast<std::size_t>(calls_of(kind, goes_on)));
      std::iota(numbers.begin(), numbers.end(), 0);
      std::shuffle(numbers.begin(), numbers.end(), random);
      numbers.resize(std::min(numbers.size(), kDozen));
      for (const int number : numbers) fail_one(kind, goes_on, number);
    }
  } else {
    for (const Kind& kind : kKinds) {
      for (const bool goes_on : {false, true}) {
        const int calls = calls_of(kind, goes_on);
        for (int number = 0; number < calls; ++number) fail_one(kind, goes_on, number);
        std::printf("%s %s, %s: %d calls\n", kind.call.c_str(), kind.name.c_str(),
                    goes_on ? "resumed" : "fresh", calls);
        std::fflush(stdout);
      }
    }
    for (const char* call : {"write", "fsync", "rename"}) EXPECT_GT(ended_[call], 0) << call;
  }
  int ended = 0;
  for (const auto& [call, runs] : ended_) ended += runs;
  std::printf("%d calls failed, which ended %d runs\n", tried_, ended);
}

}  // namespace
}  // namespace rk
