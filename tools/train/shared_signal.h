// A signal that asks one of several processes to stop, taken by all of them.
#pragma once

#include "engine/group/process_group.h"
#include "engine/system/signals.h"

namespace rk {

// Whether a signal asked any process to stop. A collective call: all processes must make it.
inline bool asked_to_stop(ProcessGroup& processes) {
  const int signal = processes.all_reduce_max(pending_signal());
  if (signal != 0) take_signal(signal);
  return signal != 0;
}

}  // namespace rk
