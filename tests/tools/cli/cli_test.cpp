#include "tools/cli/cli.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "engine/system/signals.h"
#include "engine/system/usable_cores.h"
#include "tests/support/messages.h"
#include "tests/support/program_run.h"
#include "tests/support/temporary_folder.h"
#include "tools/cli/flags/command_line.h"
#include "tools/cli/flags/program_names.h"
#include "tools/cli/flags/shell_word.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace rk {
namespace {

class Fake : public Command {
 public:
  explicit Fake(std::function<void(const CommonOptions&)> work) : work_(std::move(work)) {}
  void add_options(Flags& flags) override {
    flags.add("--data", data_, "what to read").required();
    flags.add("--batch", batch_, "images a step").check(in_range(1, 1000));
    flags.add("--cache", cache_, "MiB to keep").check(in_range(0, 1 << 30));
  }
  void run(const CommonOptions& common) override { work_(common); }
  const char* less_memory() const override { return "--batch, --cache"; }

 private:
  std::function<void(const CommonOptions&)> work_;
  std::string data_;
  int batch_ = 128;
  int cache_ = 512;
};

Finished run(
    const std::vector<std::string>& arguments,
    std::function<void(const CommonOptions&)> work = [](const CommonOptions&) {}) {
  return run_here("folder/train", arguments, std::make_unique<Fake>(std::move(work)));
}

TEST(Cli, DoneIsZeroAndSilent) {
  const Finished result = run({"--data", "x"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
}

TEST(Cli, HelpShowsEveryDefault) {
  const Finished result = run({"--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(holds(result.out, "=128"));
  EXPECT_TRUE(holds(result.out, "=auto"));
  EXPECT_TRUE(holds(result.out, "--seed UINT=0"));
}

// A limit that only keeps a number within an int says nothing; nor do words on other programs.
TEST(Cli, HelpSaysWhatConcernsTheProgram) {
  const std::string help = run({"--help"}).out;
  for (const char* words :
       {"--batch INT:1 to 1000=128", "--cache INT:0 or more=512", "--device TEXT:{auto,cpu}=auto",
        "this command computes on the CPU alone", "no progress, no notes\n"}) {
    EXPECT_TRUE(holds(help, words)) << words << " is not in\n" << help;
  }
}

TEST(Cli, VersionIsPrinted) {
  const Finished result = run({"--version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "Rankine " RK_VERSION "\n");
}

TEST(Cli, UnknownFlagNamesTheNearest) {
  // --data is missing as well, but the misspelt flag is the likelier mistake and must be named.
  for (const char* flag : {"--bacth", "--bacth=3"}) {
    const Finished result = run({flag});
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.err, "error: --bacth: no such flag; did you mean --batch?\n");
  }
}

TEST(Cli, AFlagWithoutItsValueIsNamed) {
  const std::pair<std::vector<std::string>, const char*> calls[] = {
      {{"--data"}, "--data: its value is missing"},
      {{"--batch", "3", "--data"}, "--data: its value is missing"},
      {{"--data", "--batch", "3"}, "--data: its value is missing, --batch follows"},
      {{"--data", "x", "--batch", "--quiet"}, "--batch: its value is missing, --quiet follows"}};
  for (const auto& [words, what] : calls) {
    const Finished result = run(words);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.err, fmt::format("error: {}; see --help\n", what));
  }
  EXPECT_EQ(run({"--data=--batch"}).code, 0);
  EXPECT_EQ(run({"--data", "-x", "-q"}).code, 0);
}

// Of lists too, which the library would join; nor may it take a name in brackets apart.
TEST(Cli, OfAFlagGivenTwiceTheLastCounts) {
  std::vector<std::int64_t> ks;
  std::vector<std::string> files, more;
  std::vector<double> mean;
  int batch = 0;
  CommandLine line("x", "");
  Flags flags = line.flags();
  flags.add("--k", ks, "").delimiter(',');
  flags.add("--mean", mean, "").delimiter(',');
  flags.add("--files", files, "");
  flags.add("--batch", batch, "");
  flags.add("--more", more, "");
  const char* const words[] = {"x",      "--k",     "1,2",     "--files", "[album]",
                               "[b,c]",  "d=[e,f]", "--k",     "4",       "5",
                               "--mean", "-1,-2",   "--batch", "3",       "--more=[g,h]",
                               "[[i]]",  "--batch", "7",       "--mean",  "-0.5"};
  EXPECT_TRUE(line.parse(static_cast<int>(std::size(words)), words));
  EXPECT_EQ(ks, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(files, (std::vector<std::string>{"[album]", "[b,c]", "d=[e,f]"}));
  EXPECT_EQ(more, (std::vector<std::string>{"[g,h]", "[[i]]"}));
  EXPECT_EQ(mean, std::vector<double>{-0.5});
  EXPECT_EQ(batch, 7);
}

TEST(Cli, WhatIsNoNumberIsNotCalledOneOutOfRange) {
  for (const char* word : {"0", "1001", "many", "12x", "1.5", ""}) {
    const Finished result = run({"--data", "x", "--batch", word});
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.err, fmt::format("error: --batch: expected an integer of 1 to 1000, got {}; "
                                      "see --help\n",
                                      word));
  }
}

// `for s in 008 009 010` counts in tens, not in eights.
TEST(Cli, LeadingZerosDoNotMakeANumberOctal) {
  std::int64_t number = 0;
  std::vector<std::int64_t> numbers;
  Flags flags;
  flags.add("--seed", number, "one").check(whole_number(-100));
  flags.add("--k", numbers, "several").delimiter(',');
  const std::pair<const char*, std::int64_t> words[] = {
      {"010", 10}, {"08", 8}, {"-010", -10}, {"+07", 7}, {"000", 0}, {"0", 0}, {"100", 100}};
  for (const auto& [word, expected] : words) {
    flags.parse({fmt::format("--seed={}", word), fmt::format("--k=1,{},002", word)});
    EXPECT_EQ(number, expected) << word;
    EXPECT_EQ(numbers, (std::vector<std::int64_t>{1, expected, 2})) << word;
  }
  for (const char* word : {"", "-", "0-1", "1.0"}) {
    EXPECT_THROW(flags.parse({fmt::format("--seed={}", word)}), UsageError) << word;
  }
}

// An empty name comes from an unset shell variable; names that are too long fit no file system.
TEST(Cli, NamesOfFilesAreNeitherEmptyNorTooLong) {
  std::string out;
  Flags flags;
  flags.add("--out", out, "a file").check(file_name()).type_name("FILE");
  const auto message = [&](const std::string& name) {
    return message_of<UsageError>([&] { flags.parse({"--out", name}); });
  };
  EXPECT_TRUE(holds(message(""), "--out: expected the name of a file, got nothing"));
  EXPECT_TRUE(holds(message(std::string(231, 'x')), "--out: expected a file name of at most 230"));
  EXPECT_TRUE(holds(message("a/" + std::string(231, 'x')), "of at most 230 bytes, got xxx"));
  EXPECT_NO_THROW(flags.parse({"--out", std::string(400, 'x') + "/" + std::string(230, 'y')}));
}

TEST(Cli, RangesIncludeTheirEndsAndAboveZeroIsNotZero) {
  const auto takes = [](const FlagCheck& check, const char* word) {
    return check.problem(word).empty();
  };
  EXPECT_FALSE(takes(above_zero(), "0"));
  EXPECT_FALSE(takes(above_zero(), "-0.5"));
  EXPECT_TRUE(takes(above_zero(), "1e-9"));
  EXPECT_TRUE(takes(at_least_zero(), "0"));
  EXPECT_FALSE(takes(at_least_zero(), "-1e-9"));
  EXPECT_TRUE(takes(zero_to_below_one(), "0"));
  EXPECT_TRUE(takes(zero_to_below_one(), "0.999999"));
  EXPECT_FALSE(takes(zero_to_below_one(), "1"));
  EXPECT_FALSE(takes(zero_to_below_one(), "-1e-9"));
  EXPECT_FALSE(takes(in_range(2, 5), "1"));
  EXPECT_TRUE(takes(in_range(2, 5), "2"));
  EXPECT_TRUE(takes(in_range(2, 5), "5"));
  EXPECT_FALSE(takes(in_range(2, 5), "6"));
}

TEST(Cli, NumbersThatNoVariableHoldsAreRefused) {
  std::int64_t count = 0;
  float small = 0;
  double number = 0;
  std::vector<double> list;
  Flags flags;
  flags.add("--count", count, "an integer");
  flags.add("--small", small, "a float");
  flags.add("--number", number, "a double");
  flags.add("--above", number, "a double").check(above_zero());
  flags.add("--list", list, "doubles").delimiter(',');
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--count", "9223372036854775808"}, "--count: expected a number nearer to 0"},
      {{"--count", "-9223372036854775809"}, "--count: expected a number nearer to 0"},
      {{"--small", "1e39"}, "--small: expected a finite number, got 1e39"},
      {{"--number", "inf"}, "--number: expected a finite number, got inf"},
      {{"--number", "-infinity"}, "--number: expected a finite number"},
      {{"--number", "nan"}, "--number: expected a finite number"},
      {{"--number", "1e400"}, "--number: expected a finite number"},
      {{"--above", "inf"}, "--above: expected a finite number"},
      {{"--list", "1,inf"}, "--list: expected a finite number, got inf"}};
  for (const auto& [words, message] : cases) {
    try {
      flags.parse(words);
      ADD_FAILURE() << words[0] << " " << words[1] << " was taken";
    } catch (const UsageError& error) {
      EXPECT_TRUE(holds(error.what(), message));
    }
  }
  flags.parse({"--count", "-9223372036854775808", "--small", "1e38", "--list", "1,1e-320"});
  EXPECT_EQ(count, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(small, 1e38F);
  EXPECT_EQ(list, (std::vector<double>{1, 1e-320}));
}

TEST(Cli, WrongUsageIsOneLineAndTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"--data"},
                                             {"--data", "x", "--batch", "0"},
                                             {"--data", "x", "--batch", "many"},
                                             {"--data", "x", "--threads", "-1"},
                                             {"--data", "x", "--seed", "-1"},
                                             {"--data", "x", "--seed", "18446744073709551616"},
                                             {"--data", "x", "-q", "-v"},
                                             {"--data", "x", "--device", "gpu"},
                                             {"--data", "x", "--device", "cuda:"},
                                             {"--data", "x", "--device", "cuda:x"},
                                             {"--data", "x", "stray"}}) {
    SCOPED_TRACE(arguments.empty() ? "nothing" : arguments.back());
    const Finished result = run(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("error: ")) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
}

TEST(Cli, TheLastOfARepeatedFlagCounts) {
  std::uint64_t seed = 0;
  const Finished result = run({"--seed", "1", "--data", "x", "--seed", "2"},
                              [&](const CommonOptions& common) { seed = common.seed; });
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(seed, 2U);
}

TEST(Cli, AutoTakesTheCpuAndSaysSoWhenAsked) {
  std::string device;
  const Finished result =
      run({"--data", "x", "-v"}, [&](const CommonOptions& common) { device = common.device; });
  EXPECT_EQ(device, "cpu");
  EXPECT_TRUE(holds(result.err, "device: cpu"));
}

// No machine could do what is asked.
TEST(Cli, CudaIsWrongUsageWhereTheCommandComputesOnTheCpuAlone) {
  for (const char* device : {"cuda", "cuda:0"}) {
    const Finished result = run({"--data", "x", "--device", device});
    EXPECT_EQ(result.code, 2);
    EXPECT_TRUE(result.err.starts_with(fmt::format("error: --device {}: ", device))) << result.err;
    EXPECT_TRUE(holds(result.err, "use --device cpu\n"));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
}

TEST(Cli, CommonFlagsArrive) {
  CommonOptions seen;
  run({"--data", "x", "--threads", "3", "--seed", "1000000000000000000", "--json", "r.json", "-q"},
      [&](const CommonOptions& common) { seen = common; });
  EXPECT_EQ(seen.threads, 3);
  EXPECT_EQ(seen.seed, 1000000000000000000U);
  EXPECT_EQ(seen.json, "r.json");
  EXPECT_TRUE(seen.quiet);
  EXPECT_FALSE(seen.verbose);
}

// A number of threads changes results, so it must arrive as given, or not at all.
TEST(Cli, ThreadsFarBeyondTheProcessorsAreRefused) {
  const int cores = usable_cores();
  if (cores > 512) GTEST_SKIP() << "4096 threads are no eight a processor here";
  int seen = -1;
  const auto with = [&](int threads) {
    const std::string number = std::to_string(threads);
    return run({"--data", "x", "--threads", number.c_str()},
               [&](const CommonOptions& common) { seen = common.threads; });
  };
  for (const int threads : {0, 1, cores}) {
    EXPECT_EQ(with(threads).err, "");
    EXPECT_EQ(seen, threads);
  }
  const Finished slow = with(8 * cores);
  EXPECT_EQ(slow.code, 0) << slow.err;
  EXPECT_TRUE(holds(slow.err, fmt::format("slower than --threads {}\n", cores)));
  EXPECT_EQ(seen, 8 * cores);
  seen = -1;
  const Finished refused = with(8 * cores + 1);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            fmt::format("error: --threads {}: this process may use {} at a time, and more than {} "
                        "threads do little but wait for one another; give --threads {}\n",
                        8 * cores + 1, counted(cores, "processor"), 8 * cores, cores));
  EXPECT_EQ(seen, -1);
}

// What a message gives as a command must be one line, and name the same file in a shell.
TEST(Cli, AWordOfAShellIsReadBackAsItWas) {
  const TemporaryFolder folder;
  for (const char* name : {"", "plain/name.h5", "two words", "it's", "o u\nt \xc3\xa9", "tab\t1",
                           "not utf-8: \xff", "\x1b[2J", "back\\slash\n'quoted' $x"}) {
    const std::string word = shell_word(name);
    EXPECT_EQ(one_line(word), word);
    const Finished read =
        run_to_end({"/usr/bin/env", "bash", "-c", "printf %s " + word}, folder.path().string());
    EXPECT_EQ(read.out, name) << word;
  }
}

TEST(Cli, QuietLeavesOutNotes) {
  const auto work = [](const CommonOptions&) { note("slower than it could be"); };
  EXPECT_EQ(run({"--data", "x"}, work).err, "note: slower than it could be\n");
  EXPECT_EQ(run({"--data", "x", "-q"}, work).err, "");
  EXPECT_EQ(run({"--data", "x"}, work).err, "note: slower than it could be\n");
}

TEST(Cli, EveryFailureHasItsCode) {
  const std::pair<std::function<void()>, int> cases[] = {
      {[] { throw UsageError("x"); }, 2},
      {[] { throw std::invalid_argument("[op] expected 3, got 4"); }, 2},
      {[] { throw InputError("x"); }, 3},
      {[] { std::ignore = std::filesystem::file_size("no such file"); }, 3},
      {[] { throw DivergedError("x"); }, 4},
      {[] { throw DeviceError("x"); }, 5},
      {[] { throw DeviceFault("x"); }, 5},
      {[] { throw OutOfMemory("x"); }, 5},
      {[] { throw std::bad_alloc(); }, 5},
      {[] { throw std::runtime_error("x"); }, 1},
      {[] { throw Interrupted("x"); }, 130},
  };
  for (const auto& [work, code] : cases) {
    const Finished result = run({"--data", "x"}, [&work = work](const CommonOptions&) { work(); });
    EXPECT_EQ(result.code, code) << result.err;
    // Being stopped is no error.
    EXPECT_EQ(result.err.starts_with("error: "), code != 130) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
}

// Of every failure to get memory, wherever it is met.
TEST(Cli, WithoutMemoryTheCommandsOwnFlagsAreNamed) {
  const auto said = [](const std::function<void()>& work) {
    return run({"--data", "x"}, [&work](const CommonOptions&) { work(); }).err;
  };
  const std::string advice = ", or take less at a time: --batch, --cache\n";
  EXPECT_EQ(said([] { throw OutOfMemory("2 MiB were asked for; wait"); }),
            "error: 2 MiB were asked for; wait" + advice);
  EXPECT_EQ(
      said([] { throw std::bad_alloc(); }),
      "error: out of memory; end what else runs here or raise the limit (ulimit -v)" + advice);
}

TEST(Cli, WhatAnotherProcessReportsIsNotReportedTwice) {
  const Finished result =
      run({"--data", "x"}, [](const CommonOptions&) { throw ReportedByAnother(); });
  EXPECT_EQ(result.err, "");
}

TEST(Cli, MessagesStayOneLine) {
  EXPECT_EQ(one_line("a\nb\tc\x1b[31m\x7f"), "a\\nb\\x09c\\x1b[31m\\x7f");
  EXPECT_EQ(one_line("Größe"), "Größe");
  // Control codes above ASCII, as single bytes and as UTF-8, and invalid UTF-8 are escaped.
  EXPECT_EQ(one_line("a\x9b[31m"), "a\\x9b[31m");
  EXPECT_EQ(one_line("a\xc2\x9b[31m"), "a\\xc2\\x9b[31m");
  EXPECT_EQ(one_line("\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(one_line("\xe2\x82"), "\\xe2\\x82");
  // What turns the text behind it around: here "gpj.exe" would be read as "exe.jpg".
  EXPECT_EQ(one_line("a\u202egpj.exe\u2069"), "a\\xe2\\x80\\xaegpj.exe\\xe2\\x81\\xa9");
  EXPECT_EQ(one_line("\u2029\u202f\u2065\u206a"), "\u2029\u202f\u2065\u206a");
  EXPECT_EQ(one_line("\u061c\u200e\u200f"), "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f");
  EXPECT_EQ(one_line("\xff"), "\\xff");
  const Finished result =
      run({"--data", "x"}, [](const CommonOptions&) { note("a\x1b[31m\nerror: b"); });
  EXPECT_EQ(result.err, "note: a\\x1b[31m\\nerror: b\n");
}

// Installed, `probe` is not in PATH, but rankine-probe is; convert is another program's.
TEST(Cli, AProgramCallsTheOthersAsItWasCalled) {
  const auto work = [](const CommonOptions&) {
    note("a: see `eval --data x`");
    fail<InputError>("evaluate --it; `probe --data x` names all");
  };
  for (const std::string name : {"", "rankine-", "build/bin/", "./"}) {
    const auto run_as = [&](const std::vector<std::string>& arguments) {
      const std::string folder = name.ends_with('/') ? "" : "/usr/bin/";
      return run_here(folder + name + "convert", arguments, std::make_unique<Fake>(work));
    };
    EXPECT_EQ(run_as({"--data", "x"}).err,
              fmt::format("note: a: see `{0}eval --data x`\nerror: evaluate --it; `{0}probe --data "
                          "x` names all\n",
                          name));
    EXPECT_TRUE(holds(run_as({"--help"}).out, "Usage: " + name + "convert [OPTIONS]"));
  }
}

TEST(Cli, HelpCallsProgramsAsTheyAreCalled) {
  const ProgramNames names("/usr/bin/rankine-eval");
  EXPECT_EQ(
      names.in_help("Converts.\n  convert a.pth a.h5    for train --weights\n  eval      ranks"),
      "Converts.\n  rankine-convert a.pth a.h5    for rankine-train --weights\n  eval      "
      "ranks");
  EXPECT_EQ(
      names.in_help("NAME (probe --loss NAME); from `bench step --tune FILE`; train prints"),
      "NAME (rankine-probe --loss NAME); from `rankine-bench step --tune FILE`; train prints");
  EXPECT_EQ(
      names.in_advice("give `train` or `convert` --input-mean; `eval --save-embeddings` makes"),
      "give `rankine-train` or `rankine-convert` --input-mean; `rankine-eval "
      "--save-embeddings` makes");
  for (const char* plain : {"eval", "/usr/bin/eval"}) {
    EXPECT_EQ(ProgramNames(plain).in_help("see probe --data"), "see probe --data");
    EXPECT_EQ(ProgramNames(plain).own(), "eval");
  }
  const ProgramNames built("build/bin/eval");
  EXPECT_EQ(built.own(), "build/bin/eval");
  EXPECT_EQ(built.in_help("Ranks.\n  eval --data x  for train --weights; see `bench`"),
            "Ranks.\n  build/bin/eval --data x  for build/bin/train --weights; see "
            "`build/bin/bench`");
}

int run_bench(std::vector<const char*> arguments, std::string& ran) {
  arguments.insert(arguments.begin(), "bench");
  std::vector<Subcommand> subcommands;
  for (const char* name : {"loss", "eval"}) {
    subcommands.push_back(
        {name, "times",
         std::make_unique<Fake>([&ran, name](const CommonOptions&) { ran = name; })});
  }
  return run_program(static_cast<int>(arguments.size()), arguments.data(), "Times.",
                     std::move(subcommands));
}

TEST(Cli, SubcommandTakesItsFlagsAndTheCommonOnes) {
  std::string ran;
  EXPECT_EQ(run_bench({"eval", "--data", "x", "--threads", "1"}, ran), 0);
  EXPECT_EQ(ran, "eval");
}

// A folder without its flag is likelier data than anything else.
TEST(Cli, AFolderWithoutItsFlagIsTakenForData) {
  const TemporaryFolder folder;
  folder.write("my photos/readme.txt", "");
  std::string ran;
  testing::internal::CaptureStderr();
  const std::string path = folder.path() / "my photos", file = path + "/readme.txt";
  EXPECT_EQ(run_bench({"eval", path.c_str()}, ran), 2);
  EXPECT_EQ(run_bench({"eval", file.c_str()}, ran), 2);
  const std::string spec = "folder:" + path;
  EXPECT_EQ(run_bench({"eval", spec.c_str()}, ran), 2);
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(holds(
      err, path + ": not expected here; as data it is --data folder:'" + path + "'; see --help\n"));
  EXPECT_TRUE(holds(err, "/readme.txt: not expected here; see --help\n"));
  EXPECT_TRUE(holds(
      err, spec + ": not expected here; as data it is --data folder:'" + path + "'; see --help\n"));
  EXPECT_EQ(ran, "");
}

TEST(Cli, SubcommandMistakesNameTheNearest) {
  std::string ran;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_bench({"los"}, ran), 2);
  EXPECT_EQ(run_bench({}, ran), 2);
  EXPECT_EQ(run_bench({"loss", "--dta", "x"}, ran), 2);
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(holds(err, "los: no such subcommand; did you mean loss?"));
  EXPECT_TRUE(holds(err, "error: no subcommand; give one of loss, eval; see --help"));
  EXPECT_TRUE(holds(err, "--dta: no such flag; did you mean --data?"));
  EXPECT_EQ(ran, "");
}

}  // namespace
}  // namespace rk
