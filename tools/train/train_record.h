// The record of a run: one line per epoch on standard output and, as JSON, in metrics.jsonl; on
// request also in metrics.csv, whose columns are the numbers of those lines ("train_map_at_r" for
// map_at_r of "train"; lists are omitted).
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct RecordOptions {
  std::int64_t epochs = 0;           // of the whole run
  std::string monitor = "map_at_r";  // the metric that selects the best epoch
  bool csv = false;
  bool quiet = false;
};

// How the header of metrics.csv begins.
inline constexpr const char* kFirstColumns = "epoch,step";

class TrainRecord {
 public:
  TrainRecord(std::string folder, RecordOptions options)
      : folder_(std::move(folder)), options_(std::move(options)) {}

  // Continues a checkpoint's history. Times are taken from metrics.jsonl, which may be behind or
  // ahead of the checkpoint if the run was killed.
  void resume(const std::vector<std::string>& history);
  // Prints an epoch and appends it. Returns the entry for the checkpoint: without times, which
  // differ from run to run.
  std::string add(nlohmann::ordered_json entry, const nlohmann::ordered_json& timing);
  void write() const;

  // Empty objects before the first epoch.
  nlohmann::ordered_json first() const { return at(0); }
  nlohmann::ordered_json last() const { return at(lines_.empty() ? 0 : lines_.size() - 1); }

  // Lines of the summary: the metrics before and after training; those of the epoch of best.h5; and
  // a remark if no epoch was better than the start. best: the best value of the monitored metric;
  // epoch: that of best.h5, 0 if there is none.
  std::vector<std::string> comparison(double best, std::int64_t epoch) const;

 private:
  nlohmann::ordered_json at(std::size_t index) const;
  std::string csv() const;

  std::string folder_;
  RecordOptions options_;
  std::vector<std::string> lines_;
};

}  // namespace rk
