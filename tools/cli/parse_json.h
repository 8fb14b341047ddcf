// JSON from a file that anyone may have written: no deeper, no wider and no longer than ours ever
// is, since the library copies and prints what it read by recursion and looks keys up one by one.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace rk {

// InputError that begins with `source` where it is no JSON, nested deeper than 64, longer than
// 16 MiB or has an object of more than 2,000 keys.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& source);

// The number at `key`, or `otherwise` where there is none.
double number_or(const nlohmann::ordered_json& object, const char* key, double otherwise);

}  // namespace rk
