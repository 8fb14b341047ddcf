// Base of tests that call `probe` in this process: a folder for files, and the program's output.
#pragma once

#include "tests/data/picture_folder.h"
#include "tests/support/messages.h"
#include "tools/cli/cli.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class ProbeRun : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  // Returns the exit code; out_ and error_ hold what was printed.
  int run(const std::vector<std::string>& arguments, std::unique_ptr<Command> command) {
    std::vector<const char*> argv{"probe"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code =
        run_program(static_cast<int>(argv.size()), argv.data(), "Probes.", std::move(command));
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  const PictureFolder folder_;
  std::string out_, error_;
};

}  // namespace rk
