// Signals at the worst moments: in a save, in an evaluation, twice.
#include "tests/tools/train/train_program.h"
#include "weights/checkpoint.h"

#include <signal.h>

namespace rk {
namespace {

namespace fs = std::filesystem;

class SignalsAtTheWorstMoment : public TrainProgram {};

// A signal before each of the calls that make a save: the save must be finished and resumable.
TEST_F(SignalsAtTheWorstMoment, InASaveAreAnsweredAfterIt) {
  const Words often = {"--save-every", "0.000001"};
  ASSERT_EQ(run(on_pictures("straight", often, 2)).code, 0);
  const std::pair<const char*, const char*> calls[] = {
      {"write", "/.last.h5.tmp"}, {"fsync", "/.last.h5.tmp"}, {"rename", "/last.h5"}};
  for (const auto& [call, file] : calls) {
    const std::string out = call;
    const Finished stopped = run(
        with_faults(on_pictures(out, often, 2), fmt::format("{},1,1,s{},{}", call, SIGTERM, file)));
    ASSERT_EQ(stopped.code, 143) << call << stopped.err;
    const Finished done = resume(out);
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(same_file("straight/last.h5", out + "/last.h5")) << call;
    EXPECT_TRUE(same_file("straight/best.h5", out + "/best.h5")) << call;
  }
}

// A second interrupt ends the run at once, in the middle of a save: the former checkpoint must stay
// whole.
TEST_F(SignalsAtTheWorstMoment, TwoInASaveLeaveTheFormerCheckpoint) {
  const Words often = {"--save-every", "0.000001"};
  ASSERT_EQ(run(on_pictures("straight", often, 2)).code, 0);
  const Finished left = run(with_faults(
      on_pictures("run", often, 2),
      fmt::format("write,1,1,s{0},/.last.h5.tmp;write,1,1,s{0},/.last.h5.tmp", SIGINT)));
  ASSERT_EQ(left.code, 130) << left.err;
  EXPECT_GT(Checkpoint(in("run/last.h5")).run().step, 0);
  ASSERT_EQ(resume("run").code, 0);
  EXPECT_TRUE(same_file("straight/last.h5", "run/last.h5"));
}

TEST_F(SignalsAtTheWorstMoment, AnEvaluationWritesNothing) {
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "1"}, 1)).code, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const Words eval = evaluating("run/last.h5", {"--split", "test", "--json", in("e.json"),
                                                  "--save-embeddings", in("e.h5"), "--batch", "4"});
    const Finished end = run(with_faults(eval, fmt::format("open,9,1,s{},/pics/test/", signal)));
    EXPECT_EQ(end.code, 128 + signal) << end.err;
    EXPECT_FALSE(fs::exists(in("e.json")));
    EXPECT_FALSE(fs::exists(in("e.h5")));
  }
}

}  // namespace
}  // namespace rk
