// Runs under unusual circumstances: clocks that jump, numbers written with commas, containers with
// less than their machine has, no /proc, hardly any /dev/shm. Each run must give the same bits as
// on a plain machine, or say what is missing.
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Circumstances : public TrainProgram {
 protected:
  void SetUp() override {
    const Finished plain = run(on_pictures("plain"));
    ASSERT_EQ(plain.code, 0) << plain.err;
  }
  void expect_plain(const std::string& out) const {
    EXPECT_TRUE(same_file("plain/last.h5", out + "/last.h5"));
    EXPECT_TRUE(same_file("plain/best.h5", out + "/best.h5"));
    EXPECT_EQ(metrics("plain").back()["map_at_r"], metrics(out).back()["map_at_r"]);
  }
};

// The clock jumps back or forth at every reading, by up to an hour and by up to decades.
TEST_F(Circumstances, TheWallClockMayJump) {
  const auto with_clock = [](const std::string& seconds, const Words& words) {
    return joined({"/usr/bin/env", "RK_CLOCK=" + seconds}, words);
  };
  for (const char* seconds : {"3600", "1200000000"}) {
    const Finished done = run(with_clock(seconds, with_faults(on_pictures(seconds), "")));
    ASSERT_EQ(done.code, 0) << done.err;
    for (const json& line : metrics(seconds)) {
      EXPECT_GT(line["eval_seconds"], 0.0);
      EXPECT_LT(line["eval_seconds"], 600.0);
      if (line["epoch"] == 0) continue;
      EXPECT_GT(line["images_per_second"], 0.0);
      EXPECT_LT(line["seconds"], 600.0);
    }
    expect_plain(seconds);
  }
  // A signal still stops the run after the step at hand and a save, and the run can be resumed.
  const Words stopped = with_faults(on_pictures("stopped", {}, 8), at_batch(5, true, "s15"));
  EXPECT_EQ(run(with_clock("1200000000", stopped)).code, 143);
  EXPECT_EQ(resume("stopped").code, 0);
}

// Reading must take no lock: file systems may have none, and another process may hold the file's.
TEST_F(Circumstances, ReadingTakesNoLock) {
  const Words eval = evaluating("plain/last.h5", {"--split", "test"});
  const Finished without = run(with_faults(eval, fmt::format("flock,0,0,{},", ENOLCK)));
  EXPECT_EQ(without.code, 0) << without.err;
  const int held = ::open(in("plain/last.h5").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  const Finished while_held = run(eval);
  EXPECT_EQ(while_held.code, 0) << while_held.err;
  ::close(held);
}

// OpenMP may give fewer threads than asked for; a run must not wait for threads that never come.
TEST_F(Circumstances, OpenMpMayGiveFewerThreads) {
  const auto with = [&](const std::string& variable, const std::string& out) {
    return run(joined({"/usr/bin/env", variable, "timeout", "-s", "KILL", "60"}, on_pictures(out)));
  };
  for (const char* variable : {"OMP_DYNAMIC=true", "OMP_MAX_ACTIVE_LEVELS=0"}) {
    const Finished done = with(variable, variable);
    ASSERT_EQ(done.code, 0) << done.err;
    expect_plain(variable);
  }
  const Finished done = with("OMP_THREAD_LIMIT=1", "limited");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "OpenMP gives 1 of 2 threads"));
}

// Locales with decimal commas, and with other rules for capitals than English.
class Locales : public Circumstances {
 protected:
  // Makes the locale from the system's descriptions; returns false if that fails.
  bool made(const std::string& language) const {
    const Finished done =
        run({"/usr/bin/env", "localedef", "-i", language, "-f", "UTF-8", in(language + ".UTF-8")});
    return done.code == 0;
  }
  Words under(const std::string& language, const Words& words) const {
    return joined({"/usr/bin/env", "LOCPATH=" + folder_.path().string(),
                   "LC_ALL=" + language + ".UTF-8", "LANG=" + language + ".UTF-8"},
                  words);
  }
};

TEST_F(Locales, ChangeNoNumberAndNoName) {
  folder_.write("recipe.toml", "lr = 0.00125\nloss = \"smooth_ap:tau=0.02\"\nmomentum = 0.5\n");
  const auto training = [&](const std::string& out) {
    return without(on_pictures(out, {"--json", in(out + ".json"), "--recipe", in("recipe.toml"),
                                     "--input-mean", "0.45,0.5,0.55"}),
                   "--lr");
  };
  const auto eval = [&](const std::string& out) {
    return evaluating(out + "/last.h5", {"--split", "test", "--json", in(out + ".eval.json")});
  };
  const Finished here = run(training("C"));
  ASSERT_EQ(here.code, 0) << here.err;
  ASSERT_EQ(run(eval("C")).code, 0);
  for (const std::string language : {"de_DE", "tr_TR"}) {
    if (!made(language)) GTEST_SKIP() << "no description of " << language << " (package locales)";
    const Finished point = run(under(language, {"/usr/bin/env", "locale", "decimal_point"}));
    ASSERT_EQ(point.out, ",\n") << "the locale does not work here";
    const Finished done = run(under(language, training(language)));
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_TRUE(same_file("C/last.h5", language + "/last.h5"));
    EXPECT_TRUE(same_file("C/settings.toml", language + "/settings.toml"));
    const json a = json::parse(file_text(in("C.json")))["after"];
    const json b = json::parse(file_text(in(language + ".json")))["after"];
    for (const char* key : {"loss", "map_at_r", "neg_mean"}) EXPECT_EQ(a.at(key), b.at(key));
    ASSERT_EQ(run(under(language, eval(language))).code, 0);
    EXPECT_EQ(json::parse(file_text(in("C.eval.json")))["metrics"],
              json::parse(file_text(in(language + ".eval.json")))["metrics"]);
    // A decimal comma is refused, not read by the locale's rules.
    EXPECT_EQ(run(under(language, on_pictures("x", {"--loss", "smooth_ap:tau=0,02"}))).code, 2);
  }
}

// Each run has a mount namespace of its own; without the privileges for that the tests are skipped.
class Containers : public Circumstances {
 protected:
  void SetUp() override {
    if (run({"/usr/bin/env", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"}).code != 0) {
      GTEST_SKIP() << "no mount namespace may be made here";
    }
    Circumstances::SetUp();
  }
  // Runs the shell commands `first`, then `words`, in a new mount namespace.
  Finished inside(const std::string& first, const Words& words) const {
    return run({"/usr/bin/env", "unshare", "-m", "/bin/sh", "-c",
                first + " && " + in_shell(words, "")[2]});
  }
  // Control groups of versions 1 and 2: places these limits at the top of the hierarchy, so that
  // they hold whichever group this process is in.
  std::string groups(const std::string& quota, const std::string& memory) const {
    fs::remove_all(in("groups"));
    folder_.write("groups/cpu.max", quota + " 100000\n");
    for (const std::string cpu : {"cpu", "cpu,cpuacct"}) {
      folder_.write("groups/" + cpu + "/cpu.cfs_quota_us", quota + "\n");
      folder_.write("groups/" + cpu + "/cpu.cfs_period_us", "100000\n");
    }
    folder_.write("groups/memory.max", memory + "\n");
    folder_.write("groups/memory.current", "1048576\n");
    folder_.write("groups/memory/memory.limit_in_bytes", memory + "\n");
    folder_.write("groups/memory/memory.usage_in_bytes", "1048576\n");
    return "mount --bind " + in("groups") + " /sys/fs/cgroup";
  }
};

TEST_F(Containers, WithoutProcRunsTheSame) {
  const Finished done = inside("mount -t tmpfs none /proc", on_pictures("run"));
  ASSERT_EQ(done.code, 0) << done.err;
  // Only the weights are compared: the file also names the processor, unknown without /proc.
  const std::vector<float> values = weights("run/last.h5");
  EXPECT_GT(values.size(), 270'000U);  // ResNet-20's
  EXPECT_EQ(values, weights("plain/last.h5"));
  const Finished resumed = inside("mount -t tmpfs none /proc", resuming("run", {"--epochs", "3"}));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  const Finished eval =
      inside("mount -t tmpfs none /proc", evaluating("run/last.h5", {"--split", "test"}));
  EXPECT_EQ(eval.code, 0) << eval.err;
}

TEST_F(Containers, SharedMemoryOfAPageIsEnough) {
  const std::string small = "mount -t tmpfs -o size=4k none /dev/shm";
  const Finished done = inside(small, on_pictures("run"));
  ASSERT_EQ(done.code, 0) << done.err;
  expect_plain("run");
  const Finished eval = inside(small, evaluating("run/last.h5", {"--split", "test"}));
  EXPECT_EQ(eval.code, 0) << eval.err;
}

TEST_F(Containers, LimitsOfProcessorsAndMemoryAreThoseOfTheContainer) {
  const Finished one = inside(groups("50000", "max"), without(on_pictures("one"), "--threads"));
  ASSERT_EQ(one.code, 0) << one.err;
  const json start = json::parse(file_text(in("one/run.json"))).at("starts")[0];
  EXPECT_TRUE(holds(start["environment"], ", 1 thread"));
  // Too little memory for the run and its save must be reported before the first step, with exit
  // code 5 (the machine's fault).
  const Finished small = inside(groups("max", std::to_string(96 << 20)),
                                on_pictures("small", {"--arch", "resnet18", "--eval-batch", "1"}));
  EXPECT_EQ(small.code, 5) << small.err;
  EXPECT_TRUE(holds(small.err, "error: this machine's memory is too small"));
  EXPECT_FALSE(fs::exists(in("small/last.h5")));
}

}  // namespace
}  // namespace rk
