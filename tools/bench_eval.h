// bench eval: ranking a made-up test set against itself, beside its floor: the same tiles of the
// same symmetric half (gathered, packed and multiplied the same way, in the same run), with nothing
// done to the scores; on a GPU the products of all tiles alone. The two alternate, so that a busy
// machine slows both alike. JSON keys: total_ms gemm_ms share peak_bytes, on a GPU device_name;
// share = floor / total, medians over pairs.
#pragma once

#include "tools/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_eval();

}  // namespace rk
