// Runs a command of a program in this process, past the choice of a device that comes before it.
#pragma once

#include "tools/cli/cli.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

namespace rk {

// Returns what the command writes to common.json; null if that is nothing.
inline nlohmann::json run_command(Command& command, CommonOptions common,
                                  const std::vector<std::string>& words) {
  Flags flags;
  flags.add("--seed", common.seed, "");
  flags.add("--threads", common.threads, "");
  flags.add("--json", common.json, "");
  flags.add("--device", common.device, "");
  command.add_options(flags);
  flags.parse(words);
  EXPECT_TRUE(command.runs_on_cuda());
  command.run(common);
  std::ifstream file(common.json);
  return file ? nlohmann::json::parse(file) : nlohmann::json();
}

}  // namespace rk
