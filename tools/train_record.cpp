#include "tools/train_record.h"

#include "engine/error.h"
#include "tools/messages.h"
#include "tools/parse_json.h"
#include "weights/atomic_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string file_in(const std::string& folder) {
  return (fs::path(folder) / "metrics.jsonl").string();
}

}  // namespace

double number_or(const ordered_json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

void TrainRecord::resume(const std::vector<std::string>& history) {
  std::ifstream file(file_in(folder_));
  std::string line;
  for (const std::string& entry : history) {
    if (!ordered_json::parse(entry, nullptr, false).is_object()) {
      fail<InputError>("{}: the checkpoint's history is damaged; use another checkpoint", folder_);
    }
    const bool there =
        std::getline(file, line) && line.starts_with(entry.substr(0, entry.size() - 1));
    lines_.push_back(there ? line : entry);
    if (!there) file.setstate(std::ios::failbit);
  }
}

std::string TrainRecord::add(ordered_json entry, const ordered_json& timing) {
  const auto metric = [&](const char* name, const char* key) {
    const double value = number_or(entry, key, std::nan(""));
    return std::isnan(value) ? std::string() : fmt::format("  {} {:.4f}", name, value);
  };
  std::string text = fmt::format("epoch {}/{}", entry["epoch"].get<std::int64_t>(), epochs_);
  text += metric("loss", "loss") + metric("R@1", "recall_at_1") + metric("MAP@R", "map_at_r");
  if (timing.contains("images_per_second")) {
    text += fmt::format("  {:.0f} images/s", timing["images_per_second"].get<double>());
  } else if (!entry.contains("loss")) {
    text += "  before training";
  }
  if (!quiet_) print("{}\n", text);
  std::string without_times = entry.dump();
  entry.update(timing);
  lines_.push_back(entry.dump());
  return without_times;
}

void TrainRecord::write() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  write_atomic(file_in(folder_), std::as_bytes(std::span(text.data(), text.size())));
}

std::vector<std::string> TrainRecord::comparison(double best) const {
  const ordered_json before = first(), after = last();
  const double start = number_or(before, "map_at_r", 0);
  const bool better = best > start;
  std::vector<std::string> lines = {fmt::format(
      "held-out classes: R@1 {:.4f} at the start, {:.4f} trained; MAP@R {:.4f}, {:.4f}{}",
      number_or(before, "recall_at_1", 0), number_or(after, "recall_at_1", 0), start,
      number_or(after, "map_at_r", 0), better ? fmt::format(" (best {:.4f})", best) : "")};
  if (!better) {
    lines.emplace_back(
        "no epoch was better than the start: train for more epochs, on more images, or with a "
        "smaller --lr");
  }
  return lines;
}

ordered_json TrainRecord::at(std::size_t index) const {
  return index < lines_.size() ? parse_json(lines_[index], file_in(folder_))
                               : ordered_json::object();
}

}  // namespace rk
