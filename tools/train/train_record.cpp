#include "tools/train/train_record.h"

#include "engine/base/error.h"
#include "retrieval/metric_text.h"
#include "tools/cli/messages.h"
#include "tools/cli/parse_json.h"
#include "tools/common/metrics_report.h"
#include "weights/atomic_file.h"
#include "weights/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string file_in(const std::string& folder, const char* name = kMetricsFile) {
  return (fs::path(folder) / name).string();
}

// A CSV field by RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// Appends the numbers of an entry, in its order; null becomes an empty text.
void add_numbers(const ordered_json& entry, const std::string& prefix,
                 std::vector<std::pair<std::string, std::string>>& numbers) {
  for (const auto& [name, value] : entry.items()) {
    if (name == "train" && value.is_object()) add_numbers(value, prefix + name + "_", numbers);
    if (value.is_number() || value.is_null()) {
      numbers.emplace_back(prefix + name, value.is_null() ? "" : value.dump());
    }
  }
}

}  // namespace

void TrainRecord::resume(const std::vector<std::string>& history) {
  std::ifstream file(file_in(folder_));
  std::string line;
  for (const std::string& entry : history) {
    if (!ordered_json::parse(entry, nullptr, false).is_object()) {
      fail<InputError>("{}: the checkpoint's history is damaged; use another checkpoint", folder_);
    }
    // The end of the file may be lost, with it some of the times.
    const bool there = std::getline(file, line) &&
                       line.starts_with(entry.substr(0, entry.size() - 1)) &&
                       ordered_json::parse(line, nullptr, false).is_object();
    lines_.push_back(there ? line : entry);
    if (!there) file.setstate(std::ios::failbit);
  }
}

std::string TrainRecord::add(ordered_json entry, const ordered_json& timing) {
  const auto metric = [&](const char* name, const char* key) {
    const double value = number_or(entry, key, std::nan(""));
    return std::isnan(value) ? std::string() : fmt::format("  {} {:.4f}", name, value);
  };
  std::string text =
      fmt::format("epoch {}/{}", entry["epoch"].get<std::int64_t>(), options_.epochs);
  text += metric("loss", "loss") + metric("R@1", "recall_at_1") + metric("MAP@R", "map_at_r");
  if (entry.contains("train")) {
    const double value = number_or(entry["train"], "map_at_r", std::nan(""));
    if (!std::isnan(value)) text += fmt::format(" (of images trained on: {:.4f})", value);
  }
  if (timing.contains("images_per_second")) {
    text += fmt::format("  {:.0f} images/s", timing["images_per_second"].get<double>());
  } else if (!entry.contains("loss")) {
    text += "  before training";
  }
  if (!options_.quiet) print("{}\n", text);
  std::string without_times = entry.dump();
  entry.update(timing);
  lines_.push_back(entry.dump());
  return without_times;
}

void TrainRecord::write() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  write_atomic(file_in(folder_), text);
  if (options_.csv) write_atomic(file_in(folder_, kTableFile), csv());
}

std::string TrainRecord::csv() const {
  std::vector<std::string> columns;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    std::vector<std::pair<std::string, std::string>> numbers;
    add_numbers(at(i), "", numbers);
    for (const auto& [name, value] : numbers) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    }
    rows.emplace_back(numbers.begin(), numbers.end());
  }
  std::string text;
  for (std::size_t c = 0; c < columns.size(); ++c) text += (c > 0 ? "," : "") + field(columns[c]);
  text += '\n';
  for (auto& row : rows) {
    for (std::size_t c = 0; c < columns.size(); ++c) text += (c > 0 ? "," : "") + row[columns[c]];
    text += '\n';
  }
  return text;
}

std::vector<std::string> TrainRecord::comparison(double best, std::int64_t epoch) const {
  const ordered_json before = first(), after = last();
  const std::string& monitor = options_.monitor;
  const bool better = best > number_or(before, monitor.c_str(), 0);
  const auto text = [](const ordered_json& entry, const char* key) {
    return text_of_metric(number_or(entry, key, std::nan("")));
  };
  const auto both = [&](const char* key, const char* format) {
    return fmt::format(fmt::runtime(format), text(before, key), text(after, key)) +
           (better && monitor == key ? fmt::format(" (best {:.4f})", best) : "");
  };
  std::string line = "held-out classes: " + both("recall_at_1", "R@1 {} at the start, {} trained") +
                     both("map_at_r", "; MAP@R {}, {}");
  if (monitor != "recall_at_1" && monitor != "map_at_r") {
    line += "; " + monitor + both(monitor.c_str(), " {}, {}");
  }
  std::vector<std::string> lines = {line};
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const ordered_json entry = at(i);
    if (epoch == 0 || number_or(entry, "epoch", 0) != static_cast<double>(epoch)) continue;
    lines.push_back(fmt::format("best.h5: of epoch {}, R@1 {}, MAP@R {}", epoch,
                                text(entry, "recall_at_1"), text(entry, "map_at_r")));
  }
  const bool defined = !std::isnan(number_or(after, monitor.c_str(), std::nan("")));
  if (!better && defined) {
    lines.push_back(fmt::format(
        "no epoch had a higher {} than the start, so that by it what the run began with is better "
        "than best.h5 or as good: train for more epochs, on more images, or with another --lr "
        "(from random weights about 1e-3, from trained ones 1e-5 to 1e-4)",
        monitor));
  }
  return lines;
}

ordered_json TrainRecord::at(std::size_t index) const {
  return index < lines_.size() ? parse_json(lines_[index], file_in(folder_))
                               : ordered_json::object();
}

}  // namespace rk
