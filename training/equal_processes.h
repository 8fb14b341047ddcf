// Checks that the processes that train one network start equal and stay equal: each reads data and
// run from its own machine's disks and computes on its own processor. The calls are collective; a
// single process passes.
#pragma once

#include "engine/base/error.h"
#include "engine/group/process_group.h"
#include "engine/tape/parameters.h"
#include "weights/run_state.h"

#include <string>
#include <utility>
#include <vector>

namespace rk {

// What a process begins with.
struct ProcessStart {
  std::string data, held_out;  // which images
  std::string place;           // in the run to resume from
  std::string weights;         // the digest of their file; empty: random ones
  // By name, in the same order in all processes.
  std::vector<std::pair<std::string, std::string>> settings;
};

// Throws InputError if anything differs from what process 0 begins with: classes would be numbered
// differently, gradients of two losses added up, or one process would wait for ever for steps that
// another does not make.
void require_equal_starts(ProcessGroup& processes, const ProcessStart& start);

class UnequalProcesses : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Throws UnequalProcesses, in all of them, if the parameters of one differ from those of process 0:
// they go on from other states of the optimizer, or processors or libraries round differently.
void require_equal_parameters(ProcessGroup& processes, const Parameters& parameters,
                              const RunState& run);

}  // namespace rk
