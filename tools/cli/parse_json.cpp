#include "tools/cli/parse_json.h"

#include "engine/base/error.h"

namespace rk {

nlohmann::ordered_json parse_json(std::string_view text, const std::string& source) {
  using Json = nlohmann::ordered_json;
  constexpr int kMaxDepth = 64;
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  if (text.size() > kMaxBytes) {
    fail<InputError>("{}: holds {} MiB of JSON, {} are read; it was not written by Rankine", source,
                     text.size() >> 20, kMaxBytes >> 20);
  }
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth <= kMaxDepth) return true;
    fail<InputError>("{}: its JSON is nested deeper than {}; it was not written by Rankine", source,
                     kMaxDepth);
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::exception&) {
    fail<InputError>("{}: holds text that is no JSON where some should be; it is damaged", source);
  }
}

}  // namespace rk
