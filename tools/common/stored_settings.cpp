#include "tools/common/stored_settings.h"

#include "engine/base/error.h"
#include "tools/cli/parse_json.h"

namespace rk {

using nlohmann::ordered_json;

ordered_json stored_settings(const Checkpoint& checkpoint) {
  ordered_json settings = parse_json(checkpoint.run().settings, checkpoint.path());
  if (settings.is_object()) return settings;
  fail<InputError>("{}: its settings are no JSON object; use another checkpoint",
                   checkpoint.path());
}

std::string stored_text(const ordered_json& settings, const std::string& name) {
  const auto value = settings.find(name);
  return value != settings.end() && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace rk
