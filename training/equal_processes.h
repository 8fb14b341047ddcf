// Checks that the processes that train one network start equal and stay equal: each reads data and
// run from its own machine's disks and computes on its own processor. The calls are collective; a
// single process passes.
#pragma once

#include "engine/base/error.h"
#include "engine/group/process_group.h"
#include "engine/tape/parameters.h"
#include "weights/checkpoint.h"

namespace rk {

// Throws InputError if the data, or the point of the run to resume from, differ from those of
// process 0: classes would be numbered differently, or one process would wait for ever for steps
// that another does not make.
void require_equal_starts(ProcessGroup& processes, const RunState& run);

class UnequalProcesses : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Throws UnequalProcesses, in all of them, if the parameters of one differ from those of process 0:
// they were started with other flags, or processors or libraries round differently.
void require_equal_parameters(ProcessGroup& processes, const Parameters& parameters,
                              const RunState& run);

}  // namespace rk
