#include "tools/train/run/monitor.h"

#include "engine/base/error.h"
#include "engine/system/read_file.h"
#include "tools/cli/parse_json.h"
#include "tools/common/stored_settings.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <system_error>

namespace rk {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

// Whether both make the same epochs of the same state.
bool resumes_alike(const RunState& a, const RunState& b) {
  return a.settings == b.settings && a.environment == b.environment && a.data == b.data &&
         a.held_out == b.held_out;
}

}  // namespace

std::optional<double> metric_of(const ordered_json& entry, const std::string& name) {
  const double value = number_or(entry, name.c_str(), std::nan(""));
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

bool take_value(RunState& run, double value, bool first) {
  const bool best = first || value > run.best;
  if (best) run.best = value;
  run.since_best = best ? 0 : run.since_best + 1;
  return best;
}

bool compare_again(RunState& run, const Checkpoint& checkpoint, const TrainSettings& settings,
                   bool held_out, const SayLine& say) {
  const std::string stored = stored_text(stored_settings(checkpoint), "monitor");
  const std::string before = stored.empty() ? "map_at_r" : stored;
  bool compared = false;
  RunState weighed = run;
  weighed.best = RunState{}.best;
  weighed.since_best = 0;
  for (const std::string& line : run.history) {
    const ordered_json entry = parse_json(line, checkpoint.path());
    const std::optional<double> value = metric_of(entry, settings.monitor);
    if (number_or(entry, "epoch", 0) < 1 || !value) continue;
    take_value(weighed, *value, !compared);
    compared = true;
  }
  const bool same = before == settings.monitor && checkpoint.run().held_out != "nothing";
  if (same || run.epoch == 0 || !held_out) return compared;
  run = std::move(weighed);
  say(compared
          ? fmt::format(
                "best.h5 stays the best by {} until an epoch's {} is above {:.4f}, the highest so "
                "far",
                before, settings.monitor, run.best)
          : fmt::format("no epoch so far has a value of {}: the next one is the best that there is",
                        settings.monitor));
  return compared;
}

std::int64_t epoch_of_best(const RunState& run, const Checkpoint& checkpoint,
                           const TrainSettings& settings, bool held_out, const SayLine& say) {
  const std::string path = (fs::path(settings.out) / kBestFile).string();
  if (run.epoch == 0 || checkpoint.path() == path) return run.epoch;
  std::string lost;
  std::error_code ignored;
  if (fs::status(path, ignored).type() == fs::file_type::not_found) {
    lost = path + ": is missing";
  } else {
    try {
      check_seal(path);
    } catch (const SystemError&) {
      throw;  // the file may be intact
    } catch (const InputError& error) {
      lost = error.what();
    }
  }
  if (lost.empty()) {
    // best.h5 may be an epoch ahead of last.h5, if the run was killed between writing the two.
    const RunState best = Checkpoint(path).run();
    const auto common =
        static_cast<std::ptrdiff_t>(std::min(best.history.size(), run.history.size()));
    if (!std::equal(best.history.begin(), best.history.begin() + common, run.history.begin())) {
      lost = path + ": is another run's";
    } else if (best.epoch <= run.epoch || resumes_alike(best, run)) {
      return best.epoch;
    } else {
      lost = fmt::format("{}: is of epoch {}, which this run makes anew, and not as it was", path,
                         best.epoch);
    }
  }
  say(fmt::format("{}; {}", lost,
                  held_out ? fmt::format("it is written again after an epoch whose {} is above "
                                         "{:.4f}, the highest so far",
                                         settings.monitor, run.best)
                           : "the next epoch writes it anew"));
  return 0;
}

}  // namespace rk
