#include "tools/train/run/stop_messages.h"

#include "engine/base/english.h"

#include <fmt/format.h>

#include <algorithm>

namespace rk {

StopMessages stop_messages(const WorkUnderWay& work, std::int64_t step, std::int64_t saved,
                           const std::string& folder) {
  const std::string batches =
      counted(step - std::max<std::int64_t>(saved, 0) + work.begun, "batch");
  const std::string how_long = work.seconds > 0.5 ? fmt::format(" (about {:.0f} s)", work.seconds)
                               : work.first_step  ? " (the first step: how long is not known)"
                                                  : "";
  const std::string saving = fmt::format(
      "{}saving to {}{}", work.what.empty() ? "" : work.what + ", then ", folder, how_long);
  return {work.shared
              ? fmt::format("{}, unless mpirun ends this before, which loses {}: after Ctrl-C it "
                            "gives a second; SIGUSR1 to mpirun waits",
                            saving, batches)
              : fmt::format("{}; Ctrl-C again within 5 seconds: at once, which loses {}", saving,
                            batches),
          fmt::format("stopped at once, which loses {} since the last save; {}", batches,
                      saved < 0 ? std::string("nothing was saved before")
                                : fmt::format("go on from step {} with --resume auto", saved))};
}

}  // namespace rk
