#include "tools/train/run/stop_messages.h"

#include "tests/support/messages.h"

namespace rk {
namespace {

TEST(StopMessages, CountWhatASecondSignalLoses) {
  const StopMessages words =
      stop_messages({.what = "finishing the step", .begun = 2}, 7, 4, "runs/a");
  EXPECT_TRUE(holds(words.first, "finishing the step, then saving to runs/a; Ctrl-C again"));
  EXPECT_TRUE(holds(words.first, "which loses 5 batches"));
  EXPECT_TRUE(stop_messages({}, 7, 4, "runs/a").first.starts_with("saving to runs/a; Ctrl-C"));
  EXPECT_EQ(words.second,
            "stopped at once, which loses 5 batches since the last save; go on from step 4 with "
            "--resume auto");
}

TEST(StopMessages, WithoutASaveLoseAll) {
  const StopMessages words = stop_messages({.what = "stopping"}, 1, -1, "a");
  EXPECT_EQ(words.second,
            "stopped at once, which loses 1 batch since the last save; nothing was saved before");
}

TEST(StopMessages, SayHowLongItTakesWhereThatIsKnown) {
  const auto first = [](double seconds, bool first_step) {
    const WorkUnderWay work = {.what = "w", .seconds = seconds, .first_step = first_step};
    return stop_messages(work, 0, 0, "a").first;
  };
  EXPECT_TRUE(holds(first(2.4, false), "saving to a (about 2 s); "));
  EXPECT_TRUE(holds(first(2.4, true), "saving to a (about 2 s); "));  // a slow save
  EXPECT_TRUE(holds(first(0.4, false), "saving to a; "));
  EXPECT_TRUE(holds(first(0, true), "saving to a (the first step: how long is not known); "));
}

// mpirun kills its processes a second after Ctrl-C, so the save is no promise.
TEST(StopMessages, OfSeveralProcessesPromiseNothing) {
  EXPECT_EQ(stop_messages({.what = "finishing the step", .seconds = 11, .begun = 1, .shared = true},
                          7, 4, "a")
                .first,
            "finishing the step, then saving to a (about 11 s), unless mpirun ends this before, "
            "which loses 4 batches: after Ctrl-C it gives a second; SIGUSR1 to mpirun waits");
}

}  // namespace
}  // namespace rk
