#include "tools/eval/learning_record.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "tools/cli/parse_json.h"
#include "tools/common/similarity_counts.h"
#include "tools/common/stored_settings.h"
#include "weights/run_folder.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;

// Empty if the file is missing or cannot be read.
std::string contents_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  try {
    return std::string(text_of(read_file(path.string(), kMostBytes)));
  } catch (const InputError& error) {
    note(error.what());
    return "";
  }
}

// The checkpoint's history, plus the later lines of metrics.jsonl if it is of the same run.
std::vector<std::string> lines_of(const Checkpoint& checkpoint, const std::string& record) {
  const std::vector<std::string>& history = checkpoint.run().history;
  std::vector<std::string> lines;
  std::istringstream text(record);
  for (std::string line; std::getline(text, line);) {
    const std::size_t i = lines.size();
    const bool same = i >= history.size() || history[i].empty() ||
                      line.starts_with(history[i].substr(0, history[i].size() - 1));
    if (!same) return history;
    lines.push_back(line);
  }
  return lines.size() < history.size() ? history : lines;
}

RecordedSet set_of(const ordered_json& values) {
  RecordedSet set;
  set.recall_at_1 = number_or(values, "recall_at_1", kUndefined);
  set.map_at_r = number_or(values, "map_at_r", kUndefined);
  set.jsd = number_or(values, "jsd", kUndefined);
  if (const auto counts = values.find("similarities"); counts != values.end()) {
    SimilarityCounts read = read_similarity_counts(*counts);
    set.positives = std::move(read.positives);
    set.negatives = std::move(read.negatives);
  }
  return set;
}

// Empty if the settings are damaged or do not name it.
std::string trained_loss(const Checkpoint& checkpoint) {
  try {
    return stored_text(stored_settings(checkpoint), "loss");
  } catch (const InputError&) {
    return "";
  }
}

// Which images the epochs were compared on, if run.json beside the checkpoint records this.
std::string held_out_part(const fs::path& path) {
  try {
    const ordered_json origin = parse_json(contents_of(path), path.string());
    const ordered_json& starts = origin.at("starts");
    if (!starts.is_array() || starts.empty()) return "";  // back() asks for an element
    return starts.back().at("held_out").at("part").get<std::string>();
  } catch (const std::exception&) {
    return "";  // of an older run or another program: the report omits it
  }
}

}  // namespace

std::optional<LearningRecord> read_learning_record(const Checkpoint& checkpoint) {
  if (!checkpoint.has_run() || checkpoint.run().history.empty()) return std::nullopt;
  const fs::path folder = fs::path(checkpoint.path()).parent_path();
  LearningRecord record;
  record.loss = trained_loss(checkpoint);
  record.held_out = held_out_part(folder / kOriginFile);
  if (checkpoint.run().batch == 0) record.evaluated = checkpoint.run().epoch;
  for (const std::string& line : lines_of(checkpoint, contents_of(folder / kMetricsFile))) {
    try {
      const ordered_json entry = parse_json(line, checkpoint.path());
      if (!entry.is_object()) fail<InputError>("it is no object");
      const double epoch = number_or(entry, "epoch", kUndefined);
      if (!(epoch >= 0 && epoch < 1e9)) fail<InputError>("it has no epoch");
      RecordedEpoch& next = record.epochs.emplace_back();
      next.epoch = static_cast<std::int64_t>(epoch);
      next.loss = number_or(entry, "loss", kUndefined);
      next.held_out = set_of(entry);
      if (const auto train = entry.find("train"); train != entry.end() && train->is_object()) {
        next.training = set_of(*train);
      }
    } catch (const InputError&) {
      note(fmt::format("{}: line {} of its run's record is damaged; the report ends before it",
                       checkpoint.path(), record.epochs.size() + 1));
      break;
    }
  }
  return record;
}

}  // namespace rk
