// What a signal that asks a run to stop is answered with: what is still done, and what a second
// signal loses.
#pragma once

#include "engine/system/signals.h"

#include <cstdint>
#include <string>

namespace rk {

struct WorkUnderWay {
  std::string what = {};    // is done before saving: "finishing the step under way"; empty: nothing
  double seconds = 0;       // that it and the save take; 0: unknown
  std::int64_t begun = 0;   // steps without a result yet
  bool first_step = false;  // is under way, so that nobody knows how long one takes
  bool shared = false;      // with other processes, which mpirun ends
};

// step: those with a result; saved: the step of the last save, -1 for none. folder: --out.
StopMessages stop_messages(const WorkUnderWay& work, std::int64_t step, std::int64_t saved,
                           const std::string& folder);

}  // namespace rk
