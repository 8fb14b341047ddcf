// bench rank: value and gradient of rambo_map or rambo_apc on one long ranking of synthetic scores,
// one in ten a positive, beside the time of the one sort of all scores that they require. JSON:
// total_ms sort_ms, with min and max, n, device, threads, version, peak_bytes; on a GPU also
// device_name, floor_ms and share.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_rank();

}  // namespace rk
