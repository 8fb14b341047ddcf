// bench rank: value and gradient of a loss of scores (rambo_map, rambo_apc, rambo_map_apc) on one
// long ranking of synthetic scores, one in ten a positive, beside the time of the one sort of all
// scores that they require. docs/metrics.md lists its JSON.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_rank();

}  // namespace rk
