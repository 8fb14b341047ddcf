// A training step that fails half done, because oneDNN gets no memory for one of its products: what
// the step has changed by then must not be saved, and the run, resumed from the last save, must end
// in the bits of an undisturbed one.
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "weights/checkpoint.h"

#include <cerrno>

namespace rk {
namespace {

namespace fs = std::filesystem;

class FailingSteps : public TrainProgram {
 protected:
  static constexpr int kBatches = 4, kSteps = 2 * kBatches;

  static constexpr const char* kNothingAsked =
      "oneDNN asks for no memory within a step on this processor";

  // oneDNN's requests for memory: every step makes equally many, and so does every evaluation.
  struct Requests {
    int at_start;
    int in_step;  // 0: on this processor oneDNN's products take all their memory beforehand
    int in_evaluation;
    // The last request of step number `step` (from 1), counted from 0.
    int last_of(int step) const {
      return at_start + step * in_step + (step - 1) / kBatches * in_evaluation - 1;
    }
  };

  static std::string no_memory(int request) {
    return fmt::format("memory,{},1,{},libdnnl", request, ENOMEM);
  }
  int requests_of(const std::string& name, const Words& more, int batches = kBatches) const {
    const Words words = with_faults(command(name, more, batches), no_memory(1'000'000'000));
    EXPECT_EQ(run(joined({"/usr/bin/env", "RK_COUNTS=" + in("counts")}, words)).code, 0);
    return std::stoi(file_text(in("counts")));
  }
  // Does the undisturbed run, and shorter ones.
  Requests counted_requests(const Words& more) const {
    const Words one_epoch = joined(more, {"--epochs", "1"});
    const int two = requests_of("straight", more), one = requests_of("one", one_epoch);
    const int of_steps = requests_of("longer", one_epoch, 2 * kBatches) - one;
    EXPECT_EQ(of_steps % kBatches, 0);
    return {2 * one - two, of_steps / kBatches, two - one - of_steps};
  }
  // Lets step number `step` (from 1) fail at its last request. `saved`: the step of the last save
  // before, 0 if there is none.
  void fail(int step, const Requests& requests, std::int64_t saved, const Words& more) const {
    SCOPED_TRACE(fmt::format("step {}, saved {}", step, saved));
    fs::remove_all(in("run"));
    const Words words = command("run", more, kBatches);
    const Finished failed = run(with_faults(words, no_memory(requests.last_of(step))));
    EXPECT_EQ(failed.code, 5) << failed.err;
    EXPECT_TRUE(holds(failed.err, "\nerror: out of memory; end what else runs here"));
    EXPECT_EQ(failed.err.find("error: "), failed.err.rfind("error: ")) << failed.err;
    if (saved == 0) {
      EXPECT_FALSE(fs::exists(in("run/last.h5")));
    } else {
      EXPECT_TRUE(
          holds(failed.err, fmt::format("step {} failed half done and is not saved; the last save "
                                        "is that of step {}, from which --resume auto goes on",
                                        step, saved)));
      EXPECT_EQ(Checkpoint(in("run/last.h5")).run().step, saved);
    }
    const Finished done = run(with_flags(words, {"--resume", "auto"}));
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(same_file("straight/last.h5", "run/last.h5"));
    EXPECT_TRUE(same_file("straight/best.h5", "run/best.h5"));
  }
};

TEST_F(FailingSteps, LeaveTheLastSaveToGoOnFrom) {
  const Requests requests = counted_requests({});
  if (requests.in_step == 0) GTEST_SKIP() << kNothingAsked;
  fail(1, requests, 0, {});
  fail(kBatches + 2, requests, kBatches, {});
}

TEST_F(FailingSteps, LoseNoOtherStepWhereEachIsSaved) {
  const Words often = {"--save-every", "0.000001"};
  const Requests requests = counted_requests(often);
  if (requests.in_step == 0) GTEST_SKIP() << kNothingAsked;
  for (const int step : {2, kSteps}) fail(step, requests, step - 1, often);
}

}  // namespace
}  // namespace rk
