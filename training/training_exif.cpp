#include "training/training_exif.h"

#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/base/note.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rk {

std::string training_exif(const Checkpoint& checkpoint) {
  const nlohmann::json settings = nlohmann::json::parse(checkpoint.run().settings, nullptr, false);
  if (!settings.is_object() || !settings.contains("data") || !settings["data"].is_string()) {
    return checkpoint.model().upright ? "turn" : "";
  }
  try {
    const DataSpec spec = read_data_spec(settings["data"].get<std::string>());
    return spec.path.empty() ? "" : spec.get("exif", "ignore");
  } catch (const UsageError&) {
    return "";
  }
}

DataSpec with_training_exif(DataSpec spec, const std::string& before) {
  if (before == "turn" && !spec.path.empty()) spec.options.try_emplace("exif", before);
  return spec;
}

std::string note_other_exif(const std::string& before, const DataSpec& spec) {
  const std::string now = spec.get("exif", "ignore");
  if (before.empty() || spec.path.empty() || before == now) return "";
  std::string text = fmt::format("the network was trained on pictures with exif={}, {} has exif={}",
                                 before, spec.text(), now);
  note(text);
  return text;
}

}  // namespace rk
