// Parses JSON from an untrusted file. Depth, width and length are limited to what Rankine's own
// files never exceed, since the library copies and prints by recursion and searches keys linearly.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace rk {

// Throws InputError, beginning with `source`, if the text is not JSON, is nested deeper than 64, is
// longer than 16 MiB or has an object of more than 2,000 keys.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& source);

// The number at `key`, or `otherwise` if there is none.
double number_or(const nlohmann::ordered_json& object, const char* key, double otherwise);

}  // namespace rk
