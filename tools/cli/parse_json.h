// JSON from a file that anyone may have written: no deeper and no longer than ours ever is, since
// the library copies and prints what it read by recursion.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace rk {

// InputError that begins with `source` where it is no JSON, nested deeper than 64 or longer than
// 16 MiB.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& source);

}  // namespace rk
