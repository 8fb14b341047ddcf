// Several processes that train one network must start from the same and stay the same: each reads
// data and run from its own machine's disks and computes on its own processor. Every process makes
// these calls; one that is alone passes.
#pragma once

#include "engine/group/process_group.h"
#include "engine/tape/parameters.h"
#include "weights/checkpoint.h"

namespace rk {

// InputError where the data or the run to go on from is not that of process 0: classes would have
// other numbers, or one process would wait for ever for steps that another one does not make.
void require_equal_starts(ProcessGroup& processes, const RunState& run);

// DeviceError where the parameters are not those of process 0: processors or libraries round
// otherwise.
void require_equal_parameters(ProcessGroup& processes, const Parameters& parameters,
                              const RunState& run);

}  // namespace rk
