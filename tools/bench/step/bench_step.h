// bench step: one training step of a network (forward, loss, backward, optimizer) beside only its
// convolutions and matrix products, alternating in one run.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_step();

}  // namespace rk
