#include "training/training_exif.h"

#include "data/spec.h"
#include "engine/base/error.h"

#include <nlohmann/json.hpp>

namespace rk {

std::string training_exif(const Checkpoint& checkpoint) {
  const nlohmann::json settings = nlohmann::json::parse(checkpoint.run().settings, nullptr, false);
  if (!settings.is_object() || !settings.contains("data") || !settings["data"].is_string()) {
    return "";
  }
  try {
    const DataSpec spec = parse_data_spec(settings["data"].get<std::string>());
    return spec.path.empty() ? "" : spec.get("exif", "ignore");
  } catch (const UsageError&) {
    return "";
  }
}

}  // namespace rk
