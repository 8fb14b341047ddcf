// A long computation behind a progress bar.
#pragma once

#include "engine/system/signals.h"
#include "tools/cli/progress.h"

#include <cstdint>
#include <string>
#include <utility>

namespace rk {

struct WorkShown {
  std::string label;  // "ranking"
  std::int64_t total = 0;
  std::string unit;  // "queries"
  bool quiet = false;
};

// Sets `options.interrupted` and `options.progress`, which is given the share done, and returns
// what work() finds; work() returns nothing if it was interrupted, which ends the program as an
// interruption does.
template <class Options, class Work>
auto with_progress(const WorkShown& shown, Options& options, Work&& work) {
  Progress progress(shown.label, shown.total, shown.unit, shown.quiet);
  options.interrupted = interrupted;
  options.progress = [&](double done) {
    progress.update(static_cast<std::int64_t>(done * static_cast<double>(shown.total)));
  };
  auto found = work();
  progress.finish();
  options.progress = nullptr;  // the bar is gone
  if (!found) stop_if_interrupted();
  return *std::move(found);
}

}  // namespace rk
