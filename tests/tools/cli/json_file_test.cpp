#include "tools/cli/json_file.h"

#include "engine/base/error.h"
#include "engine/system/signals.h"
#include "tests/support/folder_test.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace rk {
namespace {

class JsonFile : public FolderTest<TemporaryFolder> {
 protected:
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }
};

// On a machine with a GPU a result gains the GPU's state.
TEST_F(JsonFile, AResultSaysWhatMadeIt) {
  const std::string path = in("r.json");
  CommonOptions common;
  common.json = path;
  common.device = "cuda:0";
  write_result(common, 3, {{"total_ms", 2}});
  nlohmann::json read = nlohmann::json::parse(std::ifstream(path));
  if (read.contains("gpu")) {
    EXPECT_GT(read["gpu"]["sm_mhz"], 0);
    read.erase("gpu");
  }
  nlohmann::json expected = {{"total_ms", 2},
                             {"program", "Rankine"},
                             {"version", RK_VERSION},
                             {"device", "cuda:0"},
                             {"threads", 3}};
  EXPECT_EQ(read, expected);
  common.device = expected["device"] = "cpu";
  write_result(common, 3, {{"total_ms", 2}});
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(path)), expected);
}

TEST_F(JsonFile, ComesBackAsWritten) {
  const std::string path = in("r.json");
  const nlohmann::json value = {{"recall_at_1", 0.1}, {"paths", {"a\nb"}}};
  write_json(path, {{"old", true}});
  write_json(path, value);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(path)), value);
  EXPECT_EQ(files(), 1U);  // no temporary file stays behind
}

TEST_F(JsonFile, WhatJsonCannotHoldIsReplaced) {
  const std::string path = in("r.json");
  write_json(path, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"name", "\xff"}});
  const auto value = nlohmann::json::parse(std::ifstream(path));
  EXPECT_TRUE(value["loss"].is_null());
  EXPECT_EQ(value["name"], "\xEF\xBF\xBD");
}

TEST_F(JsonFile, AResultSaysWhoseItIs) {
  const std::string path = in("r.json");
  CommonOptions common;
  common.json = path;
  common.device = "cpu";
  write_result(common, 1, {{"metrics", {{"program", 1}, {"deep", {1, {2}}}}}});
  EXPECT_TRUE(is_result_of_rankine(path));
  write_json(path, {{"starts", {{{"version", "1.0"}}}}});  // as in a run's record
  EXPECT_FALSE(is_result_of_rankine(path));
  for (const std::string& others :
       {std::string(R"({"name": "app", "version": "1.0"})"),
        std::string(R"({"inside": {"program": "Rankine"}})"), std::string(R"(["Rankine"])"),
        std::string(R"([{"program": "Rankine"}])"), std::string(R"({"program": ["Rankine"]})"),
        std::string(R"({"program": "Other", "name": "Rankine"})"), std::string("{\"program\": "),
        std::string(1 << 20, '['), "{\"a\": " + std::string(1 << 20, '[')}) {
    std::ofstream(path) << others;
    EXPECT_FALSE(is_result_of_rankine(path)) << others.substr(0, 80);
  }
}

TEST_F(JsonFile, FailureNamesTheFileAndLeavesNothing) {
  EXPECT_THROW(write_json(folder_.path() / "no" / "r.json", 1), InputError);
  std::filesystem::create_directory(folder_.path() / "is_folder");
  EXPECT_THROW(write_json(folder_.path() / "is_folder", 1), InputError);
  EXPECT_EQ(files(), 1U);
}

TEST_F(JsonFile, PipesAreWrittenToAsTheyAre) {
  // A pipe made here: with a device, a broken build run as root could replace the machine's.
  const std::string path = in("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_json(path, 17);
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 3);
  EXPECT_STREQ(text, "17\n");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST_F(JsonFile, AReaderThatLeftIsNoWrongPath) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_IGN);  // as run_program() does
    dup2(ends[1], STDOUT_FILENO);
    give_standard_output_to_json();
    try {
      write_json(kStandardOutput, 17);
    } catch (const ReaderGone&) {
      _exit(0);
    } catch (...) {
    }
    _exit(1);
  }
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A signal that came while the program finished its work must not lose the result.
TEST_F(JsonFile, ASignalThatCameBeforeLosesNothing) {
  const std::string path = in("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  const pid_t child = fork();
  if (child == 0) {
    take_signal(SIGTERM);
    write_json(path, 17);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 3);
  close(reader);
}

// Waiting for a pipe that nobody reads, or that is full, must end on a signal.
TEST_F(JsonFile, APipeIsWaitedForUntilASignalComes) {
  const std::string path = in("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const bool read_by_somebody : {false, true}) {
    const int reader = read_by_somebody ? open(path.c_str(), O_RDONLY | O_NONBLOCK) : -1;
    const pid_t child = fork();
    if (child == 0) {
      install_signal_handlers();
      try {
        write_json(path, std::string(1 << 20, 'x'));  // more than a pipe holds
      } catch (const Interrupted& stopped) {
        const std::string said =
            "stopped: nobody reads " + path + ", so the result was not written";
        _exit(std::string(stopped.what()).starts_with(said) ? interrupted_exit_code() : 2);
      } catch (...) {
      }
      _exit(1);
    }
    int status = 0;
    usleep(300'000);
    EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "it did not wait";
    kill(child, SIGTERM);
    for (int tries = 0; tries < 100 && waitpid(child, &status, WNOHANG) == 0; ++tries) {
      usleep(100'000);
      if (tries == 99) kill(child, SIGKILL);
    }
    EXPECT_TRUE(WIFEXITED(status)) << "it was not to be stopped";
    EXPECT_EQ(WEXITSTATUS(status), 143);
    if (reader >= 0) close(reader);
  }
  // A reader that comes late and reads slowly must get the whole text.
  const pid_t child = fork();
  if (child == 0) {
    write_json(path, std::string(1 << 18, 'x'));
    _exit(0);
  }
  usleep(200'000);
  std::ifstream file(path);
  std::string text;
  for (char c = 0; file.get(c);) {
    if (text.size() == 100) usleep(200'000);
    text += c;
  }
  EXPECT_EQ(text.size(), (std::size_t{1} << 18) + 3);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace rk
