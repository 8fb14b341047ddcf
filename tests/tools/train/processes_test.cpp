// `train` started by mpiexec as several processes, as on a cluster.
#include "tests/support/messages.h"
#include "tests/support/mpi_run.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "weights/checkpoint.h"

#include <fmt/format.h>
#include <signal.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <sstream>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

testing::AssertionResult says_one_error(const std::string& text) {
  const std::size_t first = text.find("error: ");
  if (first != std::string::npos && text.find("error: ", first + 1) == std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "none or several errors in: " << text;
}

class TrainProcesses : public TrainProgram {
 protected:
  void SetUp() override {
    if (!has_mpiexec()) GTEST_SKIP() << "this build has no MPI (libopenmpi-dev)";
  }
  Words shared_by(int processes, const std::string& out, const Words& more) const {
    const Words words = joined(
        tiny_run(), {"--threads", "1", "--optimizer", "sgd", "--lr", "0.01", "--out", in(out)});
    return joined(processes > 1 ? mpiexec(processes) : Words(), with_flags(words, more));
  }
  // 64 pictures that are read from files for every batch, and as many held out.
  Words with_pictures(const Words& more) const {
    folder_.classes("pics/train/c", 8, 8);
    folder_.classes("pics/test/t", 8, 8);
    return joined(more, {"--data", "folder:" + in("pics"), "--cache", "0", "--workers", "1"});
  }
  // `train`, which reads 8 pictures for a batch, meets the fault `what` when it has opened `opened`
  // of them.
  static Words failing(const Words& train, const std::string& what, int opened = 40) {
    return with_faults(train, fmt::format("open,{},1,{},/pics/train/", opened, what));
  }
  // The second fails at its sixth batch or a little before.
  static Words second_fails(const Words& train, const std::string& what) {
    return together(train, failing(train, what));
  }
};

// Another MPI than the build's, which finds itself alone, would let each process train by itself.
TEST_F(TrainProcesses, AnotherMpiIsRefused) {
  for (const char* said : {"PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const Finished end = run(joined({"/usr/bin/env", std::string(said) + "=3"},
                                    shared_by(1, "other", {"--epochs", "1"})));
    EXPECT_EQ(end.code, 2) << end.err;
    EXPECT_TRUE(says_one_error(end.err));
    EXPECT_TRUE(holds(end.err, "started as one of 3 processes (" + std::string(said) +
                                   "), but MPI found no other: "));
    EXPECT_FALSE(fs::exists(in("other")));
  }
}

// Where the first has no part in it, the first of the others says which it is, and the others
// nothing.
TEST_F(TrainProcesses, AnErrorOfOthersIsSaidOnceAndByWhom) {
  const Words good = shared_by(1, "run", {"--epochs", "1"});
  Words words = mpiexec(3);
  const std::string bad = shell_line(joined(good, {"--bogus", "1"}));
  words.insert(words.end(), {"/bin/sh", "-c",
                             "if [ \"$OMPI_COMM_WORLD_RANK\" = 0 ]; then " + shell_line(good) +
                                 "; else " + bad + "; fi"});
  const Finished end = run(words);
  EXPECT_EQ(end.code, 2) << end.err;
  EXPECT_TRUE(says_one_error(end.err));
  EXPECT_TRUE(holds(end.err, "process 1 on ")) << end.err;
  EXPECT_TRUE(holds(end.err, " ends all 3:\nerror: --bogus")) << end.err;
}

// With frozen batch norm two processes must compute the run of one but for rounding. Plain SGD does
// not amplify rounding (Adam's first steps would turn it into a whole step wherever a gradient is
// nearly 0), and neither does a soft ranking.
TEST_F(TrainProcesses, TwoTrainAsOneDoes) {
  const Words settings = {"--bn",     "frozen", "--momentum", "0", "--loss", "smooth_ap:tau=0.1",
                          "--epochs", "2",      "--batches",  "3"};
  const Finished one = run(shared_by(1, "one", settings));
  ASSERT_EQ(one.code, 0) << one.err;
  const Finished two = run(shared_by(2, "two", settings));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_TRUE(holds(two.err, "processes: 2, 8 images of a batch each"));
  // Only one process prints.
  EXPECT_EQ(two.out.find("epoch 2/2"), two.out.rfind("epoch 2/2"));
  const std::vector<json> a = metrics("one"), b = metrics("two");
  ASSERT_EQ(a.size(), 3U);
  ASSERT_EQ(b.size(), 3U);
  for (std::size_t epoch = 1; epoch < a.size(); ++epoch) {
    const double loss = a[epoch]["loss"];
    EXPECT_NEAR(b[epoch]["loss"], loss, 1e-4 * loss) << epoch;
  }
  EXPECT_NE(a[1]["loss"], a[2]["loss"]);
}

// A batch system's signal to one process must stop all after the same step, and resuming must give
// the bits of an undisturbed run.
TEST_F(TrainProcesses, StopTogetherAndResumeBitEqual) {
  const Words settings = {"--bn", "train", "--epochs", "2", "--batches", "8"};
  const Finished straight = run(shared_by(2, "straight", with_pictures(settings)));
  ASSERT_EQ(straight.code, 0) << straight.err;
  const Finished stopped = run(
      second_fails(shared_by(1, "stopped", with_pictures(settings)), fmt::format("s{}", SIGUSR1)));
  ASSERT_EQ(stopped.code, 128 + SIGUSR1) << stopped.err;
  EXPECT_TRUE(holds(stopped.err, "stopped after batch"));
  EXPECT_TRUE(holds(stopped.err, "; go on with: mpirun -n 2 "));
  const Finished done = run(joined(mpiexec(2), resuming("stopped")));
  ASSERT_EQ(done.code, 0) << done.err;
  for (const char* file : {"/last.h5", "/best.h5"}) {
    const std::string bytes = file_text(in(std::string("straight") + file));
    EXPECT_FALSE(bytes.empty());
    EXPECT_TRUE(bytes == file_text(in(std::string("stopped") + file))) << file;
  }
}

TEST_F(TrainProcesses, RefuseWhatTheyCannotShare) {
  const Finished unequal = run(shared_by(3, "a", {}));
  EXPECT_EQ(unequal.code, 2);
  EXPECT_TRUE(holds(unequal.err, "--batch 16: cannot be shared equally by 3 processes; use 24"));
  // There are classes for 32.
  const Finished most = run(shared_by(3, "a", {"--batch", "32"}));
  EXPECT_TRUE(holds(most.err, "--batch 32: cannot be shared equally by 3 processes; use 24"));
  const Finished none = run(shared_by(
      3, "a", {"--data", "glyphs:classes=2,test_classes=2,images=8,size=32", "--per-class", "8"}));
  EXPECT_TRUE(holds(none.err, "--batch 16: cannot be shared equally by 3 processes; start 2"));
  const Finished chunk = run(shared_by(2, "b", {"--chunk", "16"}));
  EXPECT_EQ(chunk.code, 2);
  EXPECT_TRUE(holds(chunk.err, "--chunk 16: does not divide the 8 images"));
  const Finished missing = run(shared_by(2, "c", {"--test-data", "folder:" + in("nowhere")}));
  EXPECT_EQ(missing.code, 3);
  EXPECT_TRUE(says_one_error(missing.err));
  for (const char* out : {"a", "b", "c"}) EXPECT_FALSE(fs::exists(in(out)));
}

// The default batch of 128 is no multiple of three, and its 4 images of a class must stay together.
TEST_F(TrainProcesses, ABatchThatNobodyChoseIsOneTheyCanShare) {
  const Words words = shared_by(
      3, "run", {"--data", "glyphs:classes=33,test_classes=4,images=4,size=32", "--epochs", "1"});
  const Finished done = run(without(words, "--batch"));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "note: --batch 120: 4 images of each of 30 classes of "));
  EXPECT_TRUE(holds(done.err, ", as 128 cannot be shared so by 3 processes; --batch chooses"));
}

TEST_F(TrainProcesses, WhatConcernsAllIsSaidOnce) {
  const Finished flag = run(shared_by(3, "run", {"--bogus", "1"}));
  EXPECT_EQ(flag.code, 2) << flag.err;
  EXPECT_TRUE(says_one_error(flag.err));
  const Finished device = run(shared_by(3, "run", {"--threads", "4096"}));
  EXPECT_EQ(device.code, 2) << device.err;
  EXPECT_TRUE(says_one_error(device.err));
  const Finished help = run(joined(mpiexec(2), {RK_BIN "/train", "--help"}));
  EXPECT_EQ(help.code, 0) << help.err;
  EXPECT_TRUE(holds(help.out, "Usage: "));
  EXPECT_EQ(help.out.find("Usage: "), help.out.rfind("Usage: "));
  const Finished memory = run(with_free(1, shared_by(2, "run", {})));
  EXPECT_EQ(memory.code, 5) << memory.err;
  EXPECT_TRUE(says_one_error(memory.err));
  // A signal to all while they read the checkpoint.
  ASSERT_EQ(run(shared_by(1, "run", {"--epochs", "1", "--batches", "1"})).code, 0);
  const Words reads =
      with_faults(resuming("run"), fmt::format("open,0,1,s{},/run/last.h5", SIGUSR1));
  const Finished stopped = run(together(reads, reads));
  EXPECT_EQ(stopped.code, 128 + SIGUSR1) << stopped.err;
  const std::string nothing = "stopped by SIGUSR1; nothing was written";
  EXPECT_TRUE(holds(stopped.err, nothing));
  EXPECT_EQ(stopped.err.find(nothing), stopped.err.rfind(nothing)) << stopped.err;
}

// The processes of a machine share its memory: what is enough for one is not for three.
TEST_F(TrainProcesses, ShareTheMemoryOfTheirMachine) {
  const Words settings = {"--batch", "24", "--per-class", "4", "--epochs", "1", "--batches", "1"};
  const std::string said = "this machine's memory is too small: ";
  constexpr int kEnoughForOne = 24;  // MiB
  EXPECT_EQ(run(with_free(kEnoughForOne, shared_by(1, "alone", settings))).code, 0);
  const Finished three = run(with_free(kEnoughForOne, shared_by(3, "run", settings)));
  EXPECT_EQ(three.code, 5) << three.err;
  EXPECT_TRUE(holds(three.err, said));
  EXPECT_TRUE(holds(three.err, " in each of 3 processes need"));
  EXPECT_EQ(run(with_free(4 * kEnoughForOne, shared_by(3, "run", settings))).code, 0);
}

// Each process meets only the bad pictures in its part of the batches, but those of both must be
// listed, saved and counted against --max-bad.
TEST_F(TrainProcesses, PicturesThatCannotBeReadAreThoseOfAll) {
  ASSERT_EQ(run(shared_by(2, "run", with_pictures({"--epochs", "1", "--batches", "2"}))).code, 0);
  // Five of eight pictures in each class become unreadable, after a run's initial check of all.
  for (int c = 0; c < 8; ++c) {
    for (int i = 0; i < 5; ++i) folder_.write(fmt::format("pics/train/c{}/{}.png", c, i), "none");
  }
  const auto go_on = [&](const char* epochs, const char* max_bad) {
    return run(joined(mpiexec(2), resuming("run", {"--epochs", epochs, "--max-bad", max_bad})));
  };
  // Each process reads four of a batch's eight classes, so it meets at most 20 bad pictures there.
  const Finished too_many = go_on("2", "20");
  EXPECT_EQ(too_many.code, 3) << too_many.err;
  EXPECT_TRUE(holds(too_many.err, "of 64 images cannot be read, more than the 20 allowed"));
  EXPECT_TRUE(holds(too_many.err, "saved after step 4"));
  EXPECT_TRUE(says_one_error(too_many.err));
  const std::size_t met = Checkpoint(in("run/last.h5")).run().bad_images.size();
  EXPECT_GT(met, 20U);
  std::istringstream list(file_text(in("run/bad_files.txt")));
  std::size_t lines = 0;
  for (std::string line; std::getline(list, line); ++lines) {
    EXPECT_TRUE(holds(line, "not a JPEG, PNG or BMP picture"));
  }
  EXPECT_EQ(lines, met);
  const Finished done = go_on("2", "40");
  EXPECT_EQ(done.code, 0) << done.err;
}

// If one process fails on a picture, the first must save what is done, and the failing one must say
// what happened.
TEST_F(TrainProcesses, OneProcesssErrorSavesTheRunOfAll) {
  const Finished failed =
      run(second_fails(shared_by(1, "run", with_pictures({"--epochs", "1", "--batches", "12"})),
                       std::to_string(ENOENT)));
  EXPECT_EQ(failed.code, 3) << failed.err;
  EXPECT_TRUE(holds(failed.err, "saved after step "));
  EXPECT_TRUE(holds(failed.err, "No such file or directory"));
  ASSERT_TRUE(fs::exists(in("run/last.h5")));
  EXPECT_GT(Checkpoint(in("run/last.h5")).run().batch, 0);
}

// Both fail at the sixth batch. The first process has looked for EXIF in all 64 pictures before.
TEST_F(TrainProcesses, OfTwoThatFailAtOnceOneReports) {
  const Words train =
      shared_by(1, "run", with_pictures({"--epochs", "1", "--batches", "12", "--eval-train", "0"}));
  const std::string what = std::to_string(ENOENT);
  const Finished failed = run(together(failing(train, what, 64 + 40), failing(train, what)));
  EXPECT_EQ(failed.code, 3) << failed.err;
  EXPECT_TRUE(says_one_error(failed.err));
  EXPECT_TRUE(holds(failed.err, "saved after step "));
  EXPECT_GT(Checkpoint(in("run/last.h5")).run().batch, 0);
}

// Each machine may have its own copy of the data. Copies that differ must be refused: classes would
// have different numbers.
TEST_F(TrainProcesses, DataAndRunsThatDifferAreRefused) {
  folder_.classes("all/train/c", 8, 4);
  folder_.classes("fewer/train/c", 7, 4);
  const auto on = [&](const std::string& data, const std::string& out) {
    return shared_by(
        1, out,
        {"--data", "folder:" + in(data), "--test-data", "none", "--batches", "2", "--epochs", "2"});
  };
  const Finished data = run(together(on("all", "data"), on("fewer", "data")));
  EXPECT_EQ(data.code, 3) << data.err;
  EXPECT_TRUE(holds(data.err, "process 1 has other training images than process 0"));
  folder_.classes("held/c", 4, 4);
  const auto held_out = with_flags(on("all", "data"), {"--test-data", "folder:" + in("held")});
  const Finished held = run(together(on("all", "data"), held_out));
  EXPECT_EQ(held.code, 3) << held.err;
  EXPECT_TRUE(holds(held.err, "process 1 has other held-out images than process 0"));
  const Words goes_on = on("all", "begun");
  ASSERT_EQ(run(with_flags(goes_on, {"--epochs", "1"})).code, 0);
  const Finished resumed =
      run(together(joined(goes_on, {"--resume", "auto"}), on("all", "elsewhere")));
  EXPECT_EQ(resumed.code, 3) << resumed.err;
  EXPECT_TRUE(holds(resumed.err, "process 1 has another run to go on from than process 0"));
  const auto from = [&](const char* run) {
    return with_flags(on("all", "new"), {"--weights", in(std::string(run) + "/last.h5")});
  };
  ASSERT_EQ(run(with_flags(on("all", "other"), {"--epochs", "1", "--seed", "1"})).code, 0);
  const Finished weights = run(together(from("begun"), from("other")));
  EXPECT_EQ(weights.code, 3) << weights.err;
  EXPECT_TRUE(holds(weights.err, "process 1 has other weights than process 0; let all read the"));
  EXPECT_FALSE(fs::exists(in("new")));
}

// The rest of an epoch is shared by as many as can share its batches, not made of other ones.
TEST_F(TrainProcesses, WhoCannotShareTheRestOfAnEpochIsToldHowManyCan) {
  const Finished stopped =
      run(second_fails(shared_by(1, "run", with_pictures({"--epochs", "2", "--batches", "8"})),
                       fmt::format("s{}", SIGUSR1)));
  ASSERT_EQ(stopped.code, 128 + SIGUSR1) << stopped.err;
  ASSERT_GT(Checkpoint(in("run/last.h5")).run().batch, 0);
  const Finished three = run(joined(mpiexec(3), resuming("run")));
  EXPECT_EQ(three.code, 2) << three.err;
  EXPECT_TRUE(holds(three.err,
                    "--batch 16: cannot be shared equally by 3 processes; start 2 until the epoch "
                    "is done"));
  EXPECT_EQ(run(joined(mpiexec(2), resuming("run"))).code, 0);
}

// The gradients of other shares are added up in another order.
TEST_F(TrainProcesses, AnotherNumberOfThemIsSaid) {
  ASSERT_EQ(run(shared_by(2, "run", {"--epochs", "1", "--batches", "1"})).code, 0);
  const auto said_by = [&](int processes, const char* epochs) {
    const Finished end = run(
        shared_by(processes, "run", {"--epochs", epochs, "--batches", "1", "--resume", "auto"}));
    EXPECT_EQ(end.code, 0) << end.err;
    return end.out + end.err;
  };
  EXPECT_FALSE(holds(said_by(2, "2"), "going on under"));
  const std::string said = said_by(4, "3");
  EXPECT_TRUE(holds(said, ", 4 processes what began under "));
  EXPECT_TRUE(holds(said, ", 2 processes: not equal to the last bit"));
}

// The picture that made it diverge may be in any part of the batch.
TEST_F(TrainProcesses, DivergenceNamesThePicturesOfAll) {
  const Finished diverged =
      run(shared_by(2, "run", with_pictures({"--lr", "1e30", "--batches", "3", "--epochs", "3"})));
  EXPECT_EQ(diverged.code, 4) << diverged.err;
  ASSERT_TRUE(holds(diverged.err, "batch and layers are in " + in("run/diverged.json")));
  const json dump = json::parse(file_text(in("run/diverged.json")));
  const auto images = dump["images"].get<std::set<std::string>>();
  EXPECT_EQ(images.size(), 16U) << dump["images"];
  EXPECT_EQ(dump["layers_of"], "the first 8 of these images, the part of process 0");
}

// Divergence that the first process finds before a save must end all processes.
TEST_F(TrainProcesses, DivergenceInFrontOfASaveEndsAll) {
  const Finished run_apart = run(shared_by(
      2, "run", {"--embedding-rate", "1e16", "--save-every", "0.0000001", "--batches", "20"}));
  EXPECT_EQ(run_apart.code, 4) << run_apart.err;
  EXPECT_TRUE(holds(run_apart.err, "training diverged"));
  EXPECT_TRUE(says_one_error(run_apart.err));
  EXPECT_FALSE(fs::exists(in("run/last.h5")));
}

// So must one that is found when a signal asks to stop.
TEST_F(TrainProcesses, DivergenceInFrontOfAStopEndsAll) {
  const Finished stopped = run(second_fails(
      shared_by(1, "run",
                with_pictures({"--embedding-rate", "1e16", "--epochs", "1", "--batches", "8"})),
      fmt::format("s{}", SIGUSR1)));
  EXPECT_EQ(stopped.code, 4) << stopped.err;
  EXPECT_TRUE(holds(stopped.err, "training diverged"));
  EXPECT_TRUE(says_one_error(stopped.err));
  EXPECT_FALSE(fs::exists(in("run/last.h5")));
}

// Together they would compute what neither flags nor settings.toml say, or wait for one another for
// ever: one makes fewer steps, saves or evaluations, or has a smaller part of a batch.
TEST_F(TrainProcesses, SettingsThatDifferAreRefused) {
  folder_.write("recipe.toml", "lr-floor = 0.5\n");
  const Words settings = {"--epochs", "1", "--batches", "2"};
  const Words usual = shared_by(1, "run", settings);
  for (const auto& [name, flags] : std::initializer_list<std::pair<std::string, Words>>{
           {"loss", {"--loss", "fastap"}},
           {"augment", {"--augment", "none"}},
           {"epochs", {"--epochs", "2"}},
           {"save-every", {"--save-every", "0"}},
           {"eval-train", {"--eval-train", "64"}},
           {"batches", {"--batches", "3"}},
           {"batch", {"--batch", "8"}},
           {"image-size", {"--image-size", "12"}},
           {"seed", {"--seed", "1"}},
           {"lr-floor", {"--recipe", in("recipe.toml")}}}) {
    const Finished end = run(together(usual, with_flags(usual, flags)));
    EXPECT_EQ(end.code, 3) << name << end.err;
    EXPECT_TRUE(says_one_error(end.err));
    EXPECT_TRUE(holds(end.err, "process 1 has another --" + name + " than process 0; start all"));
    EXPECT_FALSE(fs::exists(in("run"))) << name;
  }
  // What each machine may have for itself.
  const Finished done =
      run(together(usual, with_flags(usual, {"--workers", "1", "--cache", "1", "--threads", "2"})));
  EXPECT_EQ(done.code, 0) << done.err;
}

// Two networks make no state to go on from: at the end of an epoch, in front of a save within it,
// and when a signal asks to stop. Both go on with the same parameters, which did not move, but with
// the momentum of different losses.
TEST_F(TrainProcesses, WhatIsNotTheSameInAllIsNotSaved) {
  for (const char* loss : {"smooth_ap", "fastap"}) {
    const Finished begun = run(shared_by(
        1, loss,
        with_pictures({"--epochs", "1", "--batches", "1", "--lr", "1e-44", "--loss", loss})));
    ASSERT_EQ(begun.code, 0) << begun.err;
  }
  const auto apart = [&](const std::string& out, const Words& more, bool stopped = false) {
    const auto goes_on = [&](const std::string& from) {
      const std::string to = in(out + from);
      fs::copy(in(from), to);
      return with_flags({RK_BIN "/train", "--out", to, "--resume", "auto", "--epochs", "2",
                         "--batches", "8", "--lr", "0.01", "--loss", "smooth_ap"},
                        more);
    };
    const Words first = goes_on("smooth_ap"), second = goes_on("fastap");
    const std::string signal = fmt::format("s{}", SIGUSR1);
    const Finished end = run(together(first, stopped ? failing(second, signal) : second));
    EXPECT_EQ(end.code, 5) << end.err;
    EXPECT_TRUE(says_one_error(end.err));
    EXPECT_FALSE(holds(end.err, "saved after"));
    EXPECT_EQ(Checkpoint(in(out + "smooth_ap/last.h5")).run().step, 1);
    return end.err;
  };
  const std::string differ = "process 1 has other parameters than process 0 after step ";
  EXPECT_TRUE(holds(apart("epoch", {}), differ + "9; "));
  EXPECT_TRUE(holds(apart("save", {"--save-every", "0.0000001"}), differ + "2; "));
  EXPECT_TRUE(holds(apart("stop", {}, true), differ));
}

}  // namespace
}  // namespace rk
