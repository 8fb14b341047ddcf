// run.json in a run's folder records how the run was produced: one entry of `starts` for each start
// of `train` there, with time, command, working folder, version, commit, environment, data and
// first step. A resumed run appends an entry; the earlier ones stay unchanged.
#pragma once

#include "data/sources/dataset.h"
#include "tools/cli/cli.h"

#include <cstdint>
#include <string>

namespace rk {

struct RunOrigin {
  const CommonOptions& common;
  std::string environment;  // RunState::environment
  int processes = 1;
  const Dataset& train;
  const Dataset* held_out = nullptr;
  std::int64_t epoch = 0, step = 0;  // at the start
  bool resumed = false;
  std::string weights;         // --weights, empty: none
  std::string weights_sha256;  // of the run's initial weights
};

// Writes or extends `folder`/run.json. An unreadable file is replaced, with a note: a run must not
// fail because of its own history.
void write_origin(const std::string& folder, const RunOrigin& origin);

}  // namespace rk
