// A program called in this process: arguments in, exit code and both streams out.
#pragma once

#include "tests/support/child_process.h"
#include "tools/cli/cli.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

inline Finished run_here(const std::string& program, const std::vector<std::string>& arguments,
                         std::unique_ptr<Command> command) {
  std::vector<const char*> argv{program.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code =
      run_program(static_cast<int>(argv.size()), argv.data(), "Works.", std::move(command));
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace rk
