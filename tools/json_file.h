// A result for scripts: written whole or not at all.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace rk {

// Replaces `path` atomically; a device or pipe (/dev/stdout) is written to as it is. Not-a-number
// and infinity become null, bytes that are no UTF-8 the replacement character. Where "device" is a
// GPU its clocks, power and temperature at this moment are added as "gpu". Errors are InputError.
void write_json(const std::string& path, const nlohmann::json& value);

}  // namespace rk
