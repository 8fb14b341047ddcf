#include "tools/train/run_summary.h"

#include "engine/base/english.h"
#include "weights/run_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace rk {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string why_over(const RunOutcome& outcome) {
  const RunState& run = outcome.run;
  const TrainSettings& settings = outcome.settings;
  if (run.epoch > settings.epochs || (run.epoch == settings.epochs && run.batch > 0)) {
    return fmt::format("{}{} are done, more than --epochs {}; more with a larger one",
                       counted(run.epoch, "epoch"), run.batch > 0 ? " and a part of the next" : "",
                       settings.epochs);
  }
  if (run.epoch >= settings.epochs) {
    if (run.epoch == 0) return "is as before the first step; training goes on with --epochs";
    return run.epoch == 1 ? std::string("the one epoch is done; more with --epochs")
                          : fmt::format("all {} epochs are done; more with --epochs", run.epoch);
  }
  return fmt::format(
      "stopped after epoch {}: {} has not risen for {}, as --patience {} asks; more with a larger "
      "--patience, or 0 for none",
      run.epoch, settings.monitor, counted(run.since_best, "epoch"), settings.patience);
}

std::vector<std::string> summary_of(const RunOutcome& outcome, bool compared) {
  const TrainSettings& settings = outcome.settings;
  std::vector<std::string> lines;
  if (outcome.run.epoch < settings.epochs) lines.push_back(why_over(outcome));
  if (compared) {
    for (std::string& line : outcome.record.comparison(outcome.run.best, outcome.best.epoch())) {
      lines.push_back(std::move(line));
    }
  }
  const auto exists = [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(fs::path(settings.out) / name, ignored);
  };
  std::vector<std::string> files = {kBestFile,     kLastFile,   kMetricsFile,  kTableFile,
                                    kSettingsFile, kOriginFile, kBadImagesFile};
  // Somebody may have removed some of them.
  std::erase_if(files, [&](const std::string& name) {
    return !exists(name) || (name == kBestFile && outcome.best.epoch() == 0) ||
           (name == kTableFile && settings.log != "csv");
  });
  for (std::string& name : files) {
    if (name == kLastFile && exists(kPreviousFile)) name += " (previous.h5: the one before)";
  }
  lines.push_back(fmt::format("{}: {}", settings.out, fmt::join(files, ", ")));
  return lines;
}

ordered_json result_of(const RunOutcome& outcome, ordered_json settings) {
  const RunState& run = outcome.run;
  const ordered_json best = outcome.best.compared() ? ordered_json(run.best) : ordered_json();
  return {{"out", outcome.settings.out},
          {"epochs", run.epoch},
          {"steps", run.step},
          {"before", outcome.record.first()},
          {"after", outcome.record.last()},
          {"best", {{outcome.settings.monitor, best}}},
          {"settings", std::move(settings)}};
}

}  // namespace rk
