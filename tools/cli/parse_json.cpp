#include "tools/cli/parse_json.h"

#include "engine/base/error.h"

#include <array>

namespace rk {

nlohmann::ordered_json parse_json(std::string_view text, const std::string& source) {
  using Json = nlohmann::ordered_json;
  constexpr int kMaxDepth = 64;
  constexpr int kMaxKeys = 2000;
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  if (text.size() > kMaxBytes) {
    fail<InputError>("{}: holds {} MiB of JSON, {} are read; it was not written by Rankine", source,
                     text.size() >> 20, kMaxBytes >> 20);
  }
  std::array<int, kMaxDepth + 2> keys{};  // of the current object at each depth
  const auto check_size = [&](int depth, Json::parse_event_t event, Json&) {
    if (depth > kMaxDepth) {
      fail<InputError>("{}: its JSON is nested deeper than {}; it was not written by Rankine",
                       source, kMaxDepth);
    }
    const auto at = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) keys[at + 1] = 0;
    if (event == Json::parse_event_t::key && ++keys[at] > kMaxKeys) {
      fail<InputError>(
          "{}: an object of its JSON has more than {} keys; it was not written by Rankine", source,
          kMaxKeys);
    }
    return true;
  };
  try {
    return Json::parse(text, check_size);
  } catch (const Json::exception&) {
    fail<InputError>("{}: holds text that is no JSON where some should be; it is damaged", source);
  }
}

double number_or(const nlohmann::ordered_json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

}  // namespace rk
