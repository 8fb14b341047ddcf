// run.json in a run's folder: what produced it. A line of `starts` for each time that `train` was
// started there: when, by which command in which folder, of which version and commit, on what, with
// which data, from which step on. A run that goes on adds one; the earlier ones stay as they are.
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
  std::int64_t epoch = 0, step = 0;  // begun from
  bool resumed = false;
  std::string weights;         // --weights, empty: none
  std::string weights_sha256;  // of the weights it all began with
};

// Writes or extends `folder`/run.json. One that cannot be read is replaced, with a note: no run
// fails for want of its own history.
void write_origin(const std::string& folder, const RunOrigin& origin);

}  // namespace rk
