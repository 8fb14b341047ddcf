// Runs on a failing machine: what they say, what they save, and that they can be resumed.
#include "engine/base/sanitizers.h"
#include "retrieval/files/embeddings_file.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "weights/atomic_file.h"
#include "weights/checkpoint.h"
#include "weights/hdf5/file.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <limits>
#include <regex>
#include <set>
#include <thread>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RunFaults : public TrainProgram {};

constexpr const char* kNoLimit = "a sanitizer reserves more addresses than any limit";

// Two runs in one folder: whichever comes second must be refused before it looks at the folder.
TEST_F(RunFaults, ASecondStartNeverOverwritesTheFirst) {
  for (const bool resuming : {true, false}) {
    // At this message a run that looked at the folder before locking it would hold no lock yet.
    const std::string more = resuming ? "auto" : "never";
    ChildProcess second(on_pictures("run", {"--resume", more}, 1000000), folder_.path().string());
    second.wait_for([&] { return holds(second.said_so_far(), "memory in MiB"); });
    fs::create_directories(in("said"));
    const Finished first = run_to_end(on_pictures("run", {"--resume", "auto"}, 10), in("said"));
    EXPECT_EQ(first.code, 3) << "two runs in one folder";
    EXPECT_TRUE(holds(first.err, "is being written to by another run"));
    EXPECT_FALSE(holds(first.out + first.err, "epoch 0/")) << "it evaluated first";
    EXPECT_FALSE(holds(first.err, "memory in MiB")) << "it built the network first";
    EXPECT_TRUE(second.running());
    second.send(SIGKILL);
    second.wait();
    fs::remove_all(in("run"));
    fs::create_directory(in("run"));
  }
}

// If a run's folder is moved and another run begins in its place, neither may lose anything.
TEST_F(RunFaults, ARunWritesToNoFolderThatTookThePlaceOfItsOwn) {
  constexpr int kBatches = 4;
  ASSERT_EQ(run(on_pictures("other", {"--seed", "77"})).code, 0);
  fs::create_directory(in("said"));
  // Stops the run (SIGSTOP) at the sync of the folder after its second save, and after the save of
  // an epoch, before the epoch's record is written.
  for (const bool often : {true, false}) {
    SCOPED_TRACE(often);
    const Words more = {"--save-every", often ? "0.000001" : "0"};
    const Words straight = on_pictures("straight", more, kBatches);
    ASSERT_EQ(run(with_faults(straight, "", in("trace"))).code, 0);
    std::istringstream trace(file_text(in("trace")));
    int saves = often ? 2 : 1, syncs = 0;
    for (std::string line; saves > 0 && std::getline(trace, line);) {
      syncs += line.starts_with("fsync ") ? 1 : 0;
      saves -= line.starts_with("rename ") && line.ends_with("/last.h5") ? 1 : 0;
    }
    ASSERT_EQ(saves, 0);
    ChildProcess first(with_faults(on_pictures("run", more, kBatches),
                                   fmt::format("fsync,{},1,s{},", syncs, SIGSTOP)),
                       in("said"));
    const std::string just_before = often ? "run/previous.h5" : "run/last.h5";
    first.wait_for([&] { return fs::exists(in(just_before)); });
    first.wait_until_stopped();
    fs::rename(in("run"), in("moved"));
    ASSERT_EQ(run(on_pictures("run", {"--seed", "77"})).code, 0);
    first.send(SIGCONT);
    const Finished refused = first.wait();
    EXPECT_EQ(refused.code, 3) << refused.err;
    EXPECT_TRUE(holds(refused.err, in("run") + ": is not the folder that this run began in"));
    for (const std::string name : {"last.h5", "previous.h5", "best.h5"}) {
      EXPECT_TRUE(same_file("other/" + name, "run/" + name)) << name;
    }
    EXPECT_EQ(metrics("run").size(), metrics("other").size());
    const Finished done = resume("moved");
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(same_file("straight/last.h5", "moved/last.h5"));
    EXPECT_TRUE(same_file("straight/best.h5", "moved/best.h5"));
    for (const char* name : {"run", "moved", "straight", "trace"}) fs::remove_all(in(name));
  }
}

// Messages that cannot be written must not end a run, and must not get into any file.
TEST_F(RunFaults, MessagesThatCannotBeWrittenEndNothing) {
  ASSERT_EQ(run(on_pictures("plain")).code, 0);
  // Streams that are closed or full. The result is in the folder, so only a failing standard output
  // changes the exit code.
  const std::tuple<const char*, const char*, int> ways[] = {{"closed", "2>&-", 0},
                                                            {"full", "2>/dev/full", 0},
                                                            {"both", ">&- 2>&- <&-", 3},
                                                            {"disk", ">/dev/full", 3}};
  for (const auto& [out, how, code] : ways) {
    const Finished end = run(in_shell(on_pictures(out), how));
    EXPECT_EQ(end.code, code) << how << end.err;
    EXPECT_TRUE(same_file("plain/last.h5", std::string(out) + "/last.h5")) << how;
    EXPECT_TRUE(same_file("plain/best.h5", std::string(out) + "/best.h5")) << how;
    EXPECT_TRUE(std::regex_match(file_text(in(std::string(out) + "/.lock")), std::regex("[0-9]+")));
    if (code == 3 && std::string(out) == "disk") {
      EXPECT_TRUE(holds(end.err, "standard output: cannot be written"));
    }
  }
  // The reader goes away in the middle, and then the run has something to say.
  const Finished gone = run(
      {"/bin/sh", "-c",
       in_shell(with_faults(on_pictures("gone", {"--max-bad", "1"}), "open,9,1,2,/pics/train/c3/"),
                "")[2] +
           " 2>&1 | head -n 3 >/dev/null"});
  EXPECT_EQ(gone.code, 0);
  EXPECT_EQ(metrics("gone").size(), 3U);
}

TEST_F(RunFaults, ResultsThatCannotBeWrittenAreAnError) {
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0.8F, 0.6F, 0.6F, 0.8F, 0, 1};
  set.labels = {0, 0, 1, 1};
  write_embeddings(in("e.h5"), set);
  const Words eval = {RK_BIN "/eval", "--embeddings", in("e.h5")};
  const Words probe = {RK_BIN "/probe", "--loss", "fastap", "--in", in("e.h5")};
  for (const Words& words : {eval, probe, Words{RK_BIN "/eval", "--help"}}) {
    EXPECT_EQ(run(words).code, 0);
    EXPECT_EQ(run(in_shell(words, ">/dev/full")).code, 3);
    EXPECT_EQ(run(in_shell(words, ">&-")).code, 3);
    EXPECT_EQ(run(in_shell(words, "2>&-")).code, 0);
    // `eval ... | head`, which has read enough: no error, but not 0 either.
    const Finished gone =
        run({"/bin/sh", "-c",
             "{ sleep 0.3; (" + in_shell(words, "")[2] + "); echo ended with $? >&2; } | true"});
    EXPECT_TRUE(gone.err.ends_with("ended with 141\n")) << gone.err;
    EXPECT_FALSE(holds(gone.err, "error:")) << gone.err;
  }
}

TEST_F(RunFaults, ASignalDuringTheLastSaveLosesNoResult) {
  const Finished done = run(with_faults(on_pictures("run", {"--epochs", "1", "--json", "-"}),
                                        fmt::format("rename,0,1,s{},/last.h5", SIGUSR1)));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(json::parse(done.out)["epochs"], 1);
}

// `probe --data` must write its results even if nobody can read its messages. (Unbuffered, so that
// every line fails.)
TEST_F(RunFaults, WhatNobodyReadsLosesNoResult) {
  on_pictures("none");  // makes the pictures
  const Words probe = {"/usr/bin/env",         "stdbuf", "-o0",       RK_BIN "/probe", "--data",
                       "folder:" + in("pics"), "--json", in("p.json")};
  EXPECT_EQ(run(in_shell(probe, ">/dev/full")).code, 3);
  EXPECT_TRUE(fs::exists(in("p.json")));
}

// What stops training and evaluation must not be said to be left out by them.
TEST_F(RunFaults, ProbeTellsTheSystemsFailuresFromBadPictures) {
  on_pictures("none");
  folder_.write("pics/train/c0/cut.png", "no picture");
  const Words probe = {RK_BIN "/probe", "--data", "folder:" + in("pics"), "--threads", "1"};
  const Finished failed =
      run(with_faults(probe, "open,3,0," + std::to_string(EACCES) + ",/pics/train/c1/"));
  EXPECT_EQ(failed.code, 3) << failed.err;
  EXPECT_TRUE(holds(failed.err, "leave them out, but stop at "));
  const Finished bad = run(probe);
  EXPECT_EQ(bad.code, 3) << bad.err;
  EXPECT_TRUE(holds(bad.err, "eval --skip-bad leave them out)"));
}

// An evaluation must be refused before its first result replaces an earlier one.
TEST_F(RunFaults, ARefusedEvaluationChangesNothing) {
  ASSERT_EQ(run(on_pictures("run")).code, 0);
  const auto eval = [&](const std::string& checkpoint, const Words& more) {
    return run(
        evaluating(checkpoint, joined({"--split", "test", "--save-embeddings", in("e.h5")}, more)));
  };
  ASSERT_EQ(eval("run/last.h5", {}).code, 0);
  const std::string before = file_text(in("e.h5"));
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  EmbeddingSet other;  // of another network: another dimension
  other.dim = 3;
  other.embeddings = {1, 0, 0, 0, 1, 0};
  other.labels = {0, 1};
  write_embeddings(in("other.h5"), other);
  for (const Words& more :
       {Words{"--gallery", in("nothere.h5")}, Words{"--gallery", in("other.h5")},
        Words{"--protocol", "veri-wild"}, Words{"--report", in("pipe")},
        Words{"--save-neighbours", in("pipe")}}) {
    const Finished refused = eval("run/previous.h5", more);
    EXPECT_TRUE(refused.code == 2 || refused.code == 3) << more[0] << refused.err;
    EXPECT_EQ(file_text(in("e.h5")), before) << more[0];
  }
  // Rows from a file meet the gallery later than pictures do.
  const Finished refused = run({RK_BIN "/eval", "--embeddings", in("e.h5"), "--gallery",
                                in("other.h5"), "--save-embeddings", in("copy.h5")});
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_FALSE(fs::exists(in("copy.h5")));
}

// An error that ends a run in the middle of an epoch must be reported, and the run saved first.
TEST_F(RunFaults, AnErrorInTheMiddleOfAnEpochSavesFirst) {
  constexpr int kBatches = 8;
  ASSERT_EQ(run(on_pictures("straight", {}, kBatches)).code, 0);
  struct Case {
    std::string faults, words;
  };
  // Count 0 in at_batch(): all four tries of a picture fail, and all other pictures meanwhile.
  const std::vector<Case> cases = {
      {at_batch(5, true, std::to_string(ENOENT), 0), "No such file or directory"},
      {at_batch(5, true, std::to_string(EACCES), 0), "cannot be opened (Permission denied); check"},
      // Held-out pictures, when they are opened for the second time.
      {"open,66,0," + std::to_string(EIO) + ",/pics/test/", "Input/output error"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string out = fmt::format("run{}", i);
    const Finished failed = run(with_faults(
        on_pictures(out, {"--max-bad", "0", "--json", in("r.json")}, kBatches), cases[i].faults));
    EXPECT_EQ(failed.code, 3) << cases[i].faults << failed.err;
    EXPECT_TRUE(holds(failed.err, cases[i].words));
    EXPECT_TRUE(holds(failed.err, "saved after step "));
    EXPECT_TRUE(holds(failed.err, "--out " + in(out) + " --resume auto --json " + in("r.json")));
    // Only ENOENT makes a picture bad.
    EXPECT_EQ(failed.err.find("--max-bad") != std::string::npos, i == 0) << failed.err;
    ASSERT_TRUE(fs::exists(in(out + "/last.h5"))) << failed.err;
    EXPECT_GT(Checkpoint(in(out + "/last.h5")).run().batch, 0);
    const Finished done = resume(out);
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(same_file("straight/best.h5", out + "/best.h5")) << cases[i].faults;
  }
}

// Failures of the system that pass, or that come before training, must not be blamed on pictures.
TEST_F(RunFaults, TheSystemsFailuresAreNoBadPictures) {
  ASSERT_EQ(run(on_pictures("straight")).code, 0);
  const std::string passing = at_batch(1, true, std::to_string(EIO), 2);
  const Finished done = run(with_faults(on_pictures("passing"), passing));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(same_file("straight/last.h5", "passing/last.h5"));
  EXPECT_FALSE(fs::exists(in("passing/bad_files.txt")));
  const Finished at_start = run(
      with_faults(on_pictures("start"), "open,3,0," + std::to_string(EMFILE) + ",/pics/train/"));
  EXPECT_EQ(at_start.code, 3);
  EXPECT_FALSE(holds(at_start.err, "--max-bad")) << at_start.err;
}

TEST_F(RunFaults, WhatWasSavedInTheMiddleOfAnEpochIsGoneOnFrom) {
  constexpr int kBatches = 4;
  const Words often = {"--save-every", "0.000001"};
  ASSERT_EQ(run(on_pictures("straight", often, kBatches)).code, 0);
  // Killed once the third save is on the disk: after batch 3 of the first epoch.
  const Finished killed = run(with_faults(on_pictures("killed", often, kBatches),
                                          fmt::format("rename,3,1,s{},/last.h5", SIGKILL)));
  ASSERT_EQ(killed.code, 128 + SIGKILL) << killed.err;
  const RunState saved = Checkpoint(in("killed/last.h5")).run();
  EXPECT_EQ(saved.epoch, 0);
  EXPECT_EQ(saved.batch, 3);
  const Finished done = resume("killed");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "last.h5: after batch 3 of epoch 1"));
  EXPECT_TRUE(same_file("straight/last.h5", "killed/last.h5"));
  EXPECT_TRUE(same_file("straight/best.h5", "killed/best.h5"));

  // With --save-every 0 the run is saved only after an epoch.
  const Finished once =
      run(with_faults(on_pictures("once", {"--save-every", "0"}, kBatches), "", in("trace")));
  ASSERT_EQ(once.code, 0) << once.err;
  const std::string trace = file_text(in("trace"));
  const std::string renamed = in("once/last.h5") + "\n";
  std::size_t saves = 0;
  for (auto at = trace.find(renamed); at != std::string::npos; at = trace.find(renamed, at + 1)) {
    ++saves;
  }
  EXPECT_EQ(saves, 2U) << trace;
}

// A save within an epoch may fail: it is tried again later, and the run loses nothing.
TEST_F(RunFaults, ASaveInBetweenMayFail) {
  const Words often = {"--save-every", "0.000001"};
  ASSERT_EQ(run(on_pictures("straight", often)).code, 0);
  const Finished done =
      run(with_faults(on_pictures("run", often), fmt::format("fsync,0,1,{},.last.h5.tmp", ENOSPC)));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "not saved after step 1: " + in("run/last.h5")));
  EXPECT_TRUE(same_file("straight/last.h5", "run/last.h5"));
}

// A checkpoint that only cannot be looked at is the newest one all the same: a run that went on
// from the one before, or anew, would replace it.
TEST_F(RunFaults, ACheckpointThatCannotBeLookedAtIsNotMissing) {
  ASSERT_EQ(run(command("run")).code, 0);
  const std::string last = file_text(in("run/last.h5"));
  for (const char* names : {"run/last.h5", ".h5"}) {
    const std::string fault = fmt::format("stat,0,0,{},{}", EIO, names);
    const Finished failed = run(with_faults(resuming("run", {"--epochs", "4"}), fault));
    EXPECT_EQ(failed.code, 3) << failed.err;
    EXPECT_TRUE(holds(failed.err, "run/last.h5: cannot be looked at (Input/output error)"));
    EXPECT_TRUE(file_text(in("run/last.h5")) == last);
  }
  EXPECT_EQ(run(resuming("run", {"--epochs", "4"})).code, 0);
}

// The run must remember that last.h5 is damaged even after a failed save, so that previous.h5 stays
// the valid one.
TEST_F(RunFaults, ADamagedStateIsNotRotatedAfterASaveThatFailed) {
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "2"})).code, 0);
  const std::string valid = file_text(in("run/previous.h5"));
  damage("run/last.h5");
  const std::string damaged = file_text(in("run/last.h5"));
  // The first save fails before it replaces anything; the run is killed in the second one, after
  // rotation.
  const Finished killed = run(with_faults(
      resuming("run", {"--epochs", "4", "--save-every", "0.000001"}),
      fmt::format("fsync,0,1,{},.last.h5.tmp;rename,0,1,s{},/last.h5", ENOSPC, SIGKILL)));
  ASSERT_EQ(killed.code, 128 + SIGKILL) << killed.err;
  EXPECT_TRUE(holds(killed.err, "not saved after step"));
  EXPECT_NE(file_text(in("run/previous.h5")), damaged);
  EXPECT_EQ(file_text(in("run/previous.h5")), valid);
}

// The save of an epoch must be tried once more before its error ends the run, and the message must
// say what is lost.
TEST_F(RunFaults, AnEpochsSaveThatFailsIsTriedAgain) {
  ASSERT_EQ(run(on_pictures("straight", {"--epochs", "3"})).code, 0);
  const Finished once = run(with_faults(on_pictures("once", {"--epochs", "3"}),
                                        fmt::format("fsync,1,1,{},.last.h5.tmp", ENOSPC)));
  EXPECT_EQ(once.code, 3) << once.err;
  EXPECT_TRUE(holds(once.err, "saved after step 6; once what follows is mended"));
  EXPECT_EQ(Checkpoint(in("once/last.h5")).run().epoch, 2);
  ASSERT_EQ(resume("once").code, 0);
  EXPECT_TRUE(same_file("straight/last.h5", "once/last.h5"));
  EXPECT_EQ(metrics("once").size(), 4U);

  const Finished twice = run(with_faults(on_pictures("twice", {"--epochs", "3"}),
                                         fmt::format("fsync,1,2,{},.last.h5.tmp", ENOSPC)));
  EXPECT_EQ(twice.code, 3) << twice.err;
  EXPECT_TRUE(holds(twice.err, "not saved after step 6: "));
  EXPECT_TRUE(holds(twice.err, "; the last save is that of step 3, from which --resume auto goes"));
  ASSERT_EQ(resume("twice").code, 0);
  EXPECT_TRUE(same_file("straight/last.h5", "twice/last.h5"));
}

// What an error's message says of earlier saves must be what --resume auto finds: best.h5 alone, or
// nothing any more.
TEST_F(RunFaults, WhatIsSaidToBeSavedIsThere) {
  const Finished best = run(with_faults(on_pictures("best", {"--save-every", "0"}),
                                        fmt::format("fsync,0,2,{},.last.h5.tmp", ENOSPC)));
  EXPECT_EQ(best.code, 3) << best.err;
  EXPECT_TRUE(holds(best.err, "; the last save is that of step 3, from which --resume auto goes"));
  EXPECT_FALSE(fs::exists(in("best/last.h5")));
  EXPECT_EQ(resume("best").code, 0);

  // Stopped (SIGSTOP) at a picture of its second epoch, while somebody removes its folder.
  const Words words = on_pictures("gone", {"--save-every", "0"}, 8);
  for (const bool made_anew : {true, false}) {
    SCOPED_TRACE(made_anew);
    ChildProcess child(with_faults(words, at_batch(13, true, fmt::format("s{}", SIGSTOP))),
                       folder_.path().string());
    child.wait_for([&] { return metrics("gone").size() >= 2; });
    child.wait_until_stopped();
    fs::remove_all(in("gone"));
    if (made_anew) fs::create_directory(in("gone"));
    while (child.running()) {
      child.send(SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const Finished end = child.wait();
    EXPECT_EQ(end.code, made_anew ? 0 : 3) << end.err;
    if (made_anew) {
      EXPECT_FALSE(holds(end.out, "settings.toml")) << end.out;
      EXPECT_TRUE(holds(end.out, "last.h5, metrics.jsonl"));
    } else {
      EXPECT_TRUE(holds(end.err, "what was saved before is no longer in " + in("gone")));
    }
    fs::remove_all(in("gone"));
  }
}

// Unreadable pictures are part of a run's state: resumed, it must equal a run that never stopped.
TEST_F(RunFaults, PicturesThatCannotBeReadStayKnown) {
  const Words with_bad = {"--max-bad", "5", "--epochs", "3"};
  on_pictures("", {});  // makes the pictures
  for (const char* name : {"pics/train/c0/0.png", "pics/train/c3/1.png"}) {
    std::ofstream(in(name), std::ios::binary) << "no picture";
  }
  ASSERT_EQ(run(on_pictures("straight", with_bad, 6)).code, 0);
  const std::string list = file_text(in("straight/bad_files.txt"));
  ASSERT_EQ(std::count(list.begin(), list.end(), '\n'), 2) << list;
  Words once = with_bad;
  once.back() = "1";
  ASSERT_EQ(run(on_pictures("run", once, 6)).code, 0);
  const Finished done = resume("run", {"--epochs", "3"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(file_text(in("run/bad_files.txt")), list);
  EXPECT_EQ(Checkpoint(in("run/last.h5")).run().bad_images.size(), 2U);
  // Two bad pictures with one allowed, even if each part of the run met fewer.
  const Finished refused = resume("run", {"--epochs", "4", "--max-bad", "1"});
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_TRUE(holds(refused.err, "2 of 64 images cannot be read, more than the 1 allowed"));
}

TEST_F(RunFaults, PicturesThatCanBeReadAgainAreOnNoList) {
  const Words words = on_pictures("run", {"--max-bad", "5", "--epochs", "1"}, 6);
  const std::string picture = file_text(in("pics/train/c0/0.png"));
  folder_.write("pics/train/c0/0.png", "no picture");
  ASSERT_EQ(run(words).code, 0);
  ASSERT_TRUE(holds(file_text(in("run/bad_files.txt")), "c0/0.png"));
  folder_.write("pics/train/c0/0.png", picture);
  ASSERT_EQ(resume("run", {"--epochs", "2"}).code, 0);
  EXPECT_FALSE(fs::exists(in("run/bad_files.txt")));
}

// A held-out picture that cannot be opened once, and can in the next evaluation.
TEST_F(RunFaults, MetricsSayWhatTheyLeaveOutAndWhenTheyDoNot) {
  const Finished done = run(with_faults(on_pictures("run", {"--max-bad", "5", "--epochs", "2"}),
                                        "open,0,1,2,/pics/test/t0/"));
  EXPECT_EQ(done.code, 0) << done.err;
  const std::string out = "held out: the metrics leave out 1 image that cannot be read, ";
  EXPECT_TRUE(holds(done.err, out + in("pics/test/t0/")));
  const std::size_t again = done.err.find("held out: every image can be read again");
  EXPECT_NE(again, std::string::npos) << done.err;
  EXPECT_LT(done.err.find(out), again);
}

TEST_F(RunFaults, AListThatCannotBeWrittenEndsNothing) {
  const auto failing = [&](const std::string& out, int lists, const std::string& more) {
    return run(with_faults(
        on_pictures(out, {"--epochs", "1", "--max-bad", "5", "--save-every", "0.000001"}, 8),
        fmt::format("{};rename,0,{},{},/bad_files{}", at_batch(1, true, std::to_string(ENOENT)),
                    lists, ENOSPC, more)));
  };
  const Finished done = failing("run", 1, "");
  EXPECT_EQ(done.code, 0) << done.err;
  const std::string told = "not listed: " + in("run/bad_files.txt") + ": cannot be replaced";
  ASSERT_TRUE(holds(done.err, told));
  EXPECT_EQ(done.err.find(told), done.err.rfind(told)) << "the next try succeeds";
  EXPECT_TRUE(holds(done.err, "left out: "));
  const std::string list = file_text(in("run/bad_files.txt"));
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 1) << list;
  // The error that ends a run must be said.
  const Finished failed = failing("failed", 0, ";" + at_batch(5, true, std::to_string(EIO), 0));
  EXPECT_EQ(failed.code, 3);
  EXPECT_TRUE(holds(failed.err, "Input/output error"));
  EXPECT_EQ(failed.err.find("error: "), failed.err.rfind("error: ")) << failed.err;
}

// Schedules must go by epochs, even if epochs change their number of batches.
TEST_F(RunFaults, AScheduleStaysWithItsEpochs) {
  const Words dropping = {"--schedule", "milestones", "--drop-at", "3",    "--drop-factor",
                          "1e-9",       "--bn",       "frozen",    "--lr", "0.05"};
  for (const auto& [before, after] : {std::pair{6, 2}, {2, 6}}) {
    const std::string out = std::to_string(before);
    ASSERT_EQ(run(on_pictures(out, dropping, before)).code, 0);
    ASSERT_EQ(resume(out, {"--epochs", "5", "--batches", std::to_string(after)}).code, 0);
    const std::vector<json> lines = metrics(out);
    const auto scores = [&](std::size_t epoch) {
      return lines.at(epoch)["pos_mean"].get<double>();
    };
    EXPECT_NE(scores(2), scores(3));
    EXPECT_NEAR(scores(3), scores(4), 1e-6) << "the rate has dropped";
    EXPECT_NEAR(scores(4), scores(5), 1e-6);
  }
}

// Some network file systems refuse to sync a folder: the files are as safe there as they can be.
TEST_F(RunFaults, AFolderThatKnowsNoSyncIsNoFailedSave) {
  ASSERT_EQ(run(with_faults(on_pictures("straight", {}, 1), "", in("trace"))).code, 0);
  std::istringstream lines(file_text(in("trace")));
  std::vector<int> of_folder;  // which of the calls, in order
  int calls = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("fsync " + in("straight"))) continue;
    if (line == "fsync " + in("straight")) of_folder.push_back(calls);
    ++calls;
  }
  ASSERT_GE(of_folder.size(), 3U);
  const auto with_error = [&](const std::string& out, int error) {
    std::string faults;
    int failed = 0;  // a call that fails is not counted by the faults behind
    for (const int call : of_folder) {
      faults +=
          fmt::format("{}fsync,{},1,{},{}", failed > 0 ? ";" : "", call - failed, error, in(out));
      ++failed;
    }
    return run(with_faults(on_pictures(out, {}, 1), faults));
  };
  const Finished done = with_error("run", EINVAL);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(same_file("straight/best.h5", "run/best.h5"));
  const Finished broken = with_error("broken", EIO);
  EXPECT_NE(broken.code, 0);
  EXPECT_TRUE(holds(broken.err, "Input/output error"));
}

// The calls that make files safe on the disk must really be made, in the safe order.
TEST_F(RunFaults, EveryFileIsSyncedAndThenItsFolder) {
  const Finished done = run(with_faults(on_pictures("run", {"--epochs", "1"}, 1), "", in("trace")));
  ASSERT_EQ(done.code, 0) << done.err;
  std::istringstream lines(file_text(in("trace")));
  std::vector<std::string> trace;
  for (std::string line; std::getline(lines, line);) trace.push_back(line);
  for (const char* name : {"last.h5", "best.h5", "metrics.jsonl", "settings.toml", "run.json"}) {
    const auto renamed = std::find_if(trace.begin(), trace.end(), [&](const std::string& line) {
      return line.starts_with("rename ") && line.ends_with(" " + in(std::string("run/") + name));
    });
    ASSERT_TRUE(renamed != trace.end() && renamed != trace.begin()) << name;
    EXPECT_TRUE(holds(*(renamed - 1), "fsync " + in(std::string("run/.") + name + ".tmp.")))
        << name;
    ASSERT_NE(renamed + 1, trace.end());
    EXPECT_EQ(*(renamed + 1), "fsync " + in("run")) << name;
  }
}

TEST_F(RunFaults, AFileSystemWithoutLocksIsNoObstacle) {
  for (const int error : {ENOSYS, ENOLCK}) {
    const Finished done = run(with_faults(on_pictures(std::to_string(error), {"--epochs", "1"}, 1),
                                          fmt::format("flock,0,0,{},/.lock", error)));
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(holds(done.err, "its file system has no locks"));
  }
}

TEST_F(RunFaults, ThreadsThatCannotBeHadAreSaid) {
  for (const char* program : {"train", "eval"}) {
    Words words = {RK_BIN "/eval", "--embeddings", in("none.h5"), "--threads", "8"};
    if (std::string(program) == "train") words = command("run", {"--threads", "8"});
    const Finished end = run(with_faults(words, fmt::format("pthread_create,3,0,{},", EAGAIN)));
    EXPECT_EQ(end.code, 5) << end.err;
    EXPECT_TRUE(holds(end.err, "error: only 4 of 8 threads can be started"));
  }
  EXPECT_FALSE(fs::exists(in("run")));
}

// A save takes memory besides the run's own; without it the run must be refused at the start.
TEST_F(RunFaults, MemoryForSavingIsAskedForBeforeTheFirstStep) {
  if (RK_SANITIZED) GTEST_SKIP() << kNoLimit;
  const auto limited = [&](const std::string& out, int mebibytes) {
    const Words more = {"--arch", "resnet18", "--epochs", "1", "--optimizer", "adam"};
    return run(limited_to(mebibytes, command(out, more, 1)));
  };
  // Searches for the least address space in which the run trains and saves.
  bool refused = false, saved = false;
  for (int mebibytes = 300; mebibytes < 1800 && !saved; mebibytes += 96) {
    const std::string out = std::to_string(mebibytes);
    const Finished end = limited(out, mebibytes);
    EXPECT_FALSE(holds(end.err, "internal")) << end.err;
    if (end.code == 0) {
      saved = true;
    } else if (end.code == 5) {
      refused = true;
      EXPECT_TRUE(holds(end.err, "error: ")) << mebibytes;
      EXPECT_TRUE(holds(end.err, "memory")) << mebibytes;
      EXPECT_FALSE(holds(end.out, "epoch 1/1")) << "it failed at its first save";
    }
  }
  EXPECT_TRUE(saved);
  EXPECT_TRUE(refused);
}

// What is advised must be possible to plan; whether it also fits beside training is asked next.
TEST_F(RunFaults, AnEvaluationBatchTooLargeIsToldOneThatIsPossible) {
  if (RK_SANITIZED) GTEST_SKIP() << kNoLimit;
  const auto limited = [&](const std::string& evaluated, int mebibytes = 700) {
    const Words words =
        command("run",
                {"--arch", "resnet20", "--image-size", "256", "--resize", "256", "--data",
                 "glyphs:classes=4,test_classes=10,images=10,size=32", "--eval-batch", evaluated},
                1);
    return run(limited_to(mebibytes, words));
  };
  const Finished end = limited("1024");
  EXPECT_EQ(end.code, 5) << end.err;
  std::smatch advised;
  ASSERT_TRUE(std::regex_search(end.err, advised,
                                std::regex("error: --eval-batch 1024: as many images at a time are "
                                           "not possible \\(.*\\); use ([0-9]+) or fewer\n")))
      << end.err;
  const Finished again = limited(advised[1].str());
  EXPECT_FALSE(holds(again.err, "not possible")) << again.err;
  EXPECT_TRUE(holds(again.err, "(less below --eval-batch " + advised[1].str() + ")"));
  // Where all 100 held-out images at once are possible, more is no other batch.
  EXPECT_TRUE(holds(limited("1024", 1465).err, "(less below --eval-batch 100)"));
  EXPECT_FALSE(fs::exists(in("run")));
}

TEST_F(RunFaults, WantOfMemoryIsNoDamage) {
  if (RK_SANITIZED) GTEST_SKIP() << kNoLimit;
  ASSERT_EQ(run(command("run", {"--arch", "resnet18", "--epochs", "1"}, 1)).code, 0);
  const Words eval = {RK_BIN "/eval",
                      "--checkpoint",
                      in("run/last.h5"),
                      "--data",
                      "glyphs:classes=2,images=2,size=32",
                      "--split",
                      "train",
                      "--threads",
                      "1",
                      "--batch",
                      "2"};
  bool short_of_memory = false, opened = false;
  for (int mebibytes = 100; mebibytes < 1800 && !opened; mebibytes += 64) {
    const Finished end = run(limited_to(mebibytes, eval));
    opened = end.code == 0;
    if (end.code == 127 || opened) continue;  // 127: not even the libraries could be loaded
    short_of_memory = short_of_memory || end.code == 5;
    EXPECT_FALSE(holds(end.err, "damaged")) << end.err;
    EXPECT_FALSE(holds(end.err, "internal")) << end.err;
  }
  EXPECT_TRUE(short_of_memory);
  EXPECT_TRUE(opened);
}

TEST_F(RunFaults, AnotherSetHeldOutIsRefused) {
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "1"}, 1)).code, 0);
  const std::string kept = file_text(in("run/best.h5"));
  fs::remove_all(in("pics/test/t7"));
  const Finished refused = resume("run", {"--epochs", "2"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, "its epochs were compared on 64 images "));
  EXPECT_TRUE(holds(refused.err, "held out are now 56 images "));
  EXPECT_EQ(file_text(in("run/best.h5")), kept);
  EXPECT_EQ(resume("run", {"--epochs", "2", "--test-data", "none"}).code, 3);
  for (int i = 0; i < 8; ++i) {
    folder_.picture(fmt::format("pics/test/t7/{}.png", i), static_cast<std::uint64_t>(7000 + i));
  }
  EXPECT_EQ(resume("run", {"--epochs", "2"}).code, 0);
}

// A run that is resumed within an epoch must keep the settings of the batches it began with.
TEST_F(RunFaults, AnEpochUnderWayKeepsItsBatches) {
  const Finished stopped = run(with_faults(on_pictures("run", {}, 8), at_batch(5, true, "s15")));
  ASSERT_EQ(stopped.code, 143) << stopped.err;
  const std::string kept = file_text(in("run/last.h5"));
  const std::int64_t batch = Checkpoint(in("run/last.h5")).run().batch;
  for (const auto& [flag, value] : {std::pair{"--batches", "2"},
                                    {"--batch", "8"},
                                    {"--per-class", "2"},
                                    {"--sampler", "random"}}) {
    const Finished refused = resume("run", {flag, value});
    EXPECT_EQ(refused.code, 3) << flag;
    EXPECT_TRUE(
        holds(refused.err, fmt::format("was saved after batch {} of an epoch with ", batch)))
        << flag;
    EXPECT_EQ(file_text(in("run/last.h5")), kept);
  }
  ASSERT_EQ(resume("run").code, 0);
  // Nor can it resume with momentum that its optimizer did not keep.
  const Finished momentum = resume("run", {"--epochs", "3", "--momentum", "0.9"});
  EXPECT_EQ(momentum.code, 3);
  EXPECT_TRUE(holds(momentum.err, "was trained by --momentum 0, so it holds none to go on with"));
  const Finished whole = resume("run", {"--epochs", "3", "--batches", "2"});
  EXPECT_EQ(whole.code, 0) << whole.err;  // between two epochs it may change
  EXPECT_EQ(metrics("run").back()["step"], 18);
}

// Checkpoints whose values are changed and that are sealed again, as anybody can.
class CheckpointValues : public RunFaults {
 protected:
  // Writes last.h5 of a run with a change, and with the weights `larger` times 1e30.
  std::string with(const std::function<void(ModelDescription&, RunState&)>& change,
                   const std::set<std::string>& larger = {}) const {
    const Checkpoint whole(in("run/last.h5"));
    ModelDescription model = whole.model();
    RunState state = whole.run();
    change(model, state);
    CheckpointWriter writer(model, state);
    const Hdf5Reader file(in("run/last.h5"));
    for (const std::string& path : file.datasets("/weights")) {
      const std::string name = path.substr(std::string("/weights/").size());
      const auto info = file.info(path);
      if (info.kind == Hdf5Reader::Kind::kFloat) {
        std::vector<float> values = file.read<float>(path);
        for (float& value : values) value *= larger.contains(name) ? 1e30F : 1;
        writer.weight(name, info.dims, values.data());
      } else {
        writer.counter(name, file.read<std::int64_t>(path)[0]);
      }
    }
    write_atomic(in("changed.h5"), writer.finish());
    return in("changed.h5");
  }
};

TEST_F(CheckpointValues, AreCheckedWhereTheyEnter) {
  ASSERT_EQ(run(command("run", {"--epochs", "1"}, 1)).code, 0);
  const Words data = {"--data", "glyphs:classes=4,images=4,size=32", "--split", "train"};
  const auto eval = [&](const std::string& path) {
    return run(joined({RK_BIN "/eval", "--checkpoint", path}, data));
  };
  EXPECT_EQ(eval(with([](ModelDescription&, RunState&) {})).code, 0);
  using Change = std::function<void(ModelDescription&, RunState&)>;
  const std::pair<const char*, Change> changes[] = {
      {"dim", [](ModelDescription& m, RunState&) { m.dim = -1; }},
      {"dim", [](ModelDescription& m, RunState&) { m.dim = std::int64_t{1} << 40; }},
      {"crop", [](ModelDescription& m, RunState&) { m.crop = 0; }},
      {"crop", [](ModelDescription& m, RunState&) { m.crop = (std::int64_t{1} << 31) + 32; }},
      {"resize", [](ModelDescription& m, RunState&) { m.resize = 8; }},
      {"pool", [](ModelDescription& m, RunState&) { m.pool = "zz"; }},
      {"gem_p", [](ModelDescription& m, RunState&) { m.gem_p = std::nan(""); }},
      {"input_std", [](ModelDescription& m, RunState&) { m.input_std[1] = 0; }},
      {"input_std", [](ModelDescription& m, RunState&) { m.input_std[2] = std::nan(""); }},
      {"input_mean", [](ModelDescription& m, RunState&) { m.input_mean[0] = INFINITY; }},
      {"gem_p", [](ModelDescription& m, RunState&) { m.gem_p = INFINITY; }},
      {"input_mean", [](ModelDescription& m, RunState&) { m.input_mean[0] = 1e308; }},
      {"input_std", [](ModelDescription& m, RunState&) { m.input_std[0] = 1e-300; }},
      {"channel_order", [](ModelDescription& m, RunState&) { m.channel_order = "BGR"; }},
      {"input_scale", [](ModelDescription& m, RunState&) { m.input_scale = 1; }},
      {"its network is 'resnet19'", [](ModelDescription& m, RunState&) { m.arch = "resnet19"; }},
      {"/run", [](ModelDescription&, RunState& r) { r.epoch = std::int64_t{1} << 62; }},
      {"/run", [](ModelDescription&, RunState& r) { r.best = std::nan(""); }}};
  for (const auto& [what, change] : changes) {
    const Finished end = eval(with(change));
    EXPECT_EQ(end.code, 3) << what << end.err;
    EXPECT_TRUE(holds(end.err, "error: " + in("changed.h5") + ": "));
    EXPECT_TRUE(holds(end.err, what));
  }
  // Values that only a resumed run reads.
  const std::pair<const char*, Change> gone_on_with[] = {
      {"is no JSON", [](ModelDescription&, RunState& r) { r.history = {"no JSON"}; }},
      {"the checkpoint's history is damaged",
       [](ModelDescription&, RunState& r) { r.history = {"7"}; }},
      {"cannot be counted", [](ModelDescription&, RunState& r) { r.step = std::int64_t{1} << 60; }},
      {"cannot be counted",
       [](ModelDescription&, RunState& r) { r.since_best = std::int64_t{1} << 60; }}};
  fs::create_directory(in("other"));
  for (const auto& [what, change] : gone_on_with) {
    fs::copy(with(change), in("other/last.h5"), fs::copy_options::overwrite_existing);
    const Finished resumed = resume("other", {"--epochs", "2", "--monitor", "map"});
    EXPECT_EQ(resumed.code, 3) << what << resumed.err;
    EXPECT_TRUE(holds(resumed.err, what));
  }
}

// Weights that are finite, but so large that activations are not.
TEST_F(CheckpointValues, ANetworkThatEmbedsNoNumbersIsRefused) {
  ASSERT_EQ(run(command("run", {"--epochs", "1"}, 1)).code, 0);
  const std::string broken =
      with([](ModelDescription&, RunState&) {}, {"layer3.2.bn2.weight", "embedding.weight"});
  EmbeddingSet index;  // of the same network, as it should have been
  index.dim = 16;
  index.embeddings.assign(32, 0.25F);
  index.labels = {0, 1};
  index.network = Checkpoint(broken).network();
  write_embeddings(in("index.h5"), index);
  folder_.picture("photo.png", 1, 20, 20);
  for (const Words& words :
       {Words{"--data", "glyphs:classes=4,images=4,size=32", "--split", "train",
              "--save-embeddings", in("e.h5")},
        Words{"--index", in("index.h5"), "--query", in("photo.png"), "--report", in("s.html")}}) {
    const Finished end = run(joined({RK_BIN "/eval", "--checkpoint", broken, "-q"}, words));
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_TRUE(
        holds(end.err, "error: " + broken + ": embeds pictures as not-a-number or infinity"));
  }
  EXPECT_FALSE(fs::exists(in("e.h5")));
  EXPECT_FALSE(fs::exists(in("s.html")));
}

TEST_F(RunFaults, EmbeddingsTooLargeNameTheirFile) {
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {3e38F, 0, 0.8F, 0.6F, 0.6F, 0.8F, 0, 1};
  set.labels = {0, 0, 1, 1};
  write_embeddings(in("large.h5"), set);
  const Finished end = run({RK_BIN "/eval", "--embeddings", in("large.h5")});
  EXPECT_EQ(end.code, 3);
  EXPECT_TRUE(holds(end.err, "error: " + in("large.h5") + ": "));
}

TEST_F(RunFaults, NumbersBeyondAllCountingAreWrongUsage) {
  for (const auto& [flag, value] : {std::pair{"--cache", "99999999999999"},
                                    {"--epochs", "9223372036854775807"},
                                    {"--batches", "9223372036854775807"},
                                    {"--warmup", "1e300"},
                                    {"--drop-at", "1e300"},
                                    {"--drop-every", "1e300"},
                                    {"--save-every", "-1"},
                                    {"--save-every", "inf"},
                                    {"--chunk", "9223372036854775807"},
                                    {"--gem-p", "inf"},
                                    {"--lr", "1e400"},
                                    {"--input-std", "inf"},
                                    {"--input-std", "1e-320"},
                                    {"--input-mean", "nan"},
                                    {"--input-mean", "1e308"},
                                    {"--seed", "18446744073709551616"},
                                    {"--max-bad", "99999999999999999999999"},
                                    {"--max-bad", "-2"}}) {
    const Finished end = run(command("run", {flag, value}));
    EXPECT_EQ(end.code, 2) << flag << end.err;
    EXPECT_TRUE(holds(end.err, flag));
  }
  EXPECT_FALSE(fs::exists(in("run")));
}

// Whatever lies in its folder, a run must write nowhere else, and over nothing but its own files.
TEST_F(RunFaults, ARunWritesItsOwnFilesAlone) {
  const std::string notes = "what somebody wrote\n";
  for (const char* name : kRunTexts) {
    SCOPED_TRACE(name);
    const std::string out = std::string("of-") + name;
    folder_.write("notes", notes);
    fs::create_directories(in(out));
    fs::create_symlink("../notes", in(out + "/" + name));
    const Finished linked = run(on_pictures(out, {"--log", "csv", "--force"}));
    EXPECT_EQ(linked.code, 3) << linked.err;
    EXPECT_TRUE(holds(linked.err, std::string(name) + ": is a link"));
    EXPECT_EQ(file_text(in("notes")), notes);
    fs::remove(in(out + "/" + name));
    folder_.write(out + "/" + name, notes);
    const Finished another = run(on_pictures(out, {"--log", "csv"}));
    EXPECT_EQ(another.code, 3) << another.err;
    EXPECT_TRUE(holds(another.err, std::string(name) + ": is no run's"));
    EXPECT_EQ(file_text(in(out + "/" + name)), notes);
  }
  ASSERT_EQ(run(on_pictures("run")).code, 0);
  fs::rename(in("run/best.h5"), in("kept.h5"));
  fs::create_symlink("../notes", in("run/best.h5"));
  const Finished led = resume("run");
  EXPECT_EQ(led.code, 3) << led.err;
  EXPECT_TRUE(holds(led.err, "best.h5: is a link"));
  EXPECT_EQ(file_text(in("notes")), notes);
  // But best.h5 may be a link to a checkpoint on another disk.
  fs::remove(in("run/best.h5"));
  fs::create_symlink("../kept.h5", in("run/best.h5"));
  EXPECT_EQ(resume("run").code, 0);
  // Not to one that another run, or this one under another name, writes.
  ASSERT_EQ(run(on_pictures("other")).code, 0);
  const std::string theirs = file_text(in("other/last.h5"));
  for (const char* place : {"../other/last.h5", "previous.h5"}) {
    fs::remove(in("run/last.h5"));
    fs::create_symlink(place, in("run/last.h5"));
    const Finished linked = resume("run");
    EXPECT_EQ(linked.code, 3) << linked.err;
    EXPECT_TRUE(holds(linked.err, "run/last.h5: is a link to "));
    EXPECT_TRUE(holds(linked.err, "a file of a run, which this one would replace"));
  }
  EXPECT_EQ(file_text(in("other/last.h5")), theirs);
  fs::remove(in("run/last.h5"));
  fs::remove(in("run/best.h5"));
  fs::create_directories(in("run/best.h5"));
  EXPECT_TRUE(holds(resume("run").err, "best.h5: is a folder"));
  fs::create_directories(in("another"));
  for (const char* name : {"last.h5", "best.h5", "metrics.jsonl", ".lock"}) {
    const Finished destroying =
        run(on_pictures("another", {"--json", in(std::string("another/../another/") + name)}));
    EXPECT_EQ(destroying.code, 2) << destroying.err;
    EXPECT_TRUE(holds(destroying.err, "is a file of the run itself"));
  }
}

// A run that read a pipe in its folder would wait for somebody to write there, and signals would
// not end it.
TEST_F(RunFaults, APipeInItsFolderIsNotWaitedFor) {
  ASSERT_EQ(run(on_pictures("run")).code, 0);
  for (const std::string name : {"metrics.jsonl", "run.json", "last.h5"}) {
    fs::rename(in("run/" + name), in("kept"));
    ASSERT_EQ(::mkfifo(in("run/" + name).c_str(), 0600), 0);
    const Finished end =
        run(joined({"/usr/bin/timeout", "-s", "KILL", "60"}, resuming("run", {"--epochs", "3"})));
    EXPECT_EQ(end.code, 3) << name << end.err;
    EXPECT_TRUE(holds(end.err, "run/" + name + ": is a pipe or a device, where a run writes"));
    fs::rename(in("kept"), in("run/" + name));
  }
  EXPECT_EQ(resume("run", {"--epochs", "3"}).code, 0);
}

// If best.h5 cannot be saved, no training may be lost, and the resumed run must end as one that
// saved it at once.
TEST_F(RunFaults, AnEpochWhoseBestCannotBeSavedIsEvaluatedAgain) {
  ASSERT_EQ(run(on_pictures("straight")).code, 0);
  const Finished failed =
      run(with_faults(on_pictures("run"), fmt::format("rename,0,1,{},best.h5", EIO)));
  EXPECT_EQ(failed.code, 3) << failed.err;
  EXPECT_TRUE(holds(failed.err, "best.h5"));
  EXPECT_TRUE(holds(failed.err, "saved after step 3; once what follows is mended"));
  const RunState state = Checkpoint(in("run/last.h5")).run();
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.epoch, 0);
  ASSERT_EQ(resume("run").code, 0);
  for (const char* name : {"best.h5", "last.h5"}) {
    EXPECT_TRUE(same_file("straight/" + std::string(name), "run/" + std::string(name)));
  }
}

TEST_F(RunFaults, WhatOnlyAStartHasUseForStaysWhatItWas) {
  ASSERT_EQ(run(on_pictures("run")).code, 0);
  const Finished end = resume("run", {"--weights", in("nothere.h5"), "--embedding-start",
                                      "orthogonal", "--epochs", "4", "--bn", "auto"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(holds(end.err, "--weights: has no effect on a run that goes on"));
  EXPECT_TRUE(holds(end.err, "--embedding-start: has no effect"));
  EXPECT_FALSE(holds(end.err, "bn: ")) << end.err;
  EXPECT_TRUE(holds(file_text(in("run/settings.toml")), "embedding-start = \"uniform\""));
  EXPECT_TRUE(holds(file_text(in("run/settings.toml")), "bn = \"train\""));
}

TEST_F(RunFaults, SettingsAreUtf8) {
  for (const char* flag : {"--weights", "--plans", "--test-data"}) {
    const Finished end = run(on_pictures("run", {flag, "folder:x\xff"}));
    EXPECT_TRUE(end.code == 2 || end.code == 3) << flag << end.err;
    EXPECT_FALSE(holds(end.err, "internal")) << end.err;
  }
  fs::rename(in("pics"), in("pics\xff"));
  Words words = on_pictures("run");
  for (std::string& word : words) {
    if (word == "folder:" + in("pics")) word = "folder:" + in("pics\xff");
  }
  const Finished end = run(words);
  EXPECT_EQ(end.code, 2) << end.err;
  EXPECT_TRUE(holds(end.err, "is no UTF-8"));
}

// Differences of a loss of many rows take long, so a signal must stop them.
TEST_F(RunFaults, ProbeStopsWhenAsked) {
  EmbeddingSet set;
  set.dim = 64;
  CounterRandom random(1, 0, 0);
  for (int row = 0; row < 3000; ++row) {
    for (int d = 0; d < set.dim; ++d) set.embeddings.push_back(static_cast<float>(random.normal()));
    set.labels.push_back(row / 4);
  }
  write_embeddings(in("e.h5"), set);
  ChildProcess child({RK_BIN "/probe", "--loss", "smooth_ap", "--normalize", "--check", "--in",
                      in("e.h5"), "--threads", "1", "--json", in("p.json")},
                     folder_.path().string());
  child.wait_for([&] { return holds(child.said_so_far(), "gradient norm"); });
  // The program reads the file once more, where a signal stops it, too; then the differences take
  // 10 s and more.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  child.send(SIGTERM);
  const Finished end = child.wait();
  EXPECT_EQ(end.code, 143) << end.out;
  EXPECT_FALSE(fs::exists(in("p.json")));
}

}  // namespace
}  // namespace rk
