// Writes a result for scripts, completely or not at all.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace rk {

// The name that stands for standard output: `--json -`.
inline constexpr const char* kStandardOutput = "-";
// Redirects standard output to standard error; only write_json("-") still writes to the original
// standard output. Has an effect once per process.
void give_standard_output_to_json();

// Replaces `path` atomically; a device or pipe (/dev/stdout) is written to directly. NaN and
// infinity become null; bytes that are not UTF-8 become the replacement character. If "device" is a
// GPU, its current clocks, power and temperature are added as "gpu". Errors are InputErrors.
//
// A top-level "version" marks a result: "program": "Rankine" is added beside it.
void write_json(const std::string& path, const nlohmann::json& value);

// Whether `path` is JSON with a top-level "program": "Rankine". Needs memory only for one string at
// a time, however large and deep the JSON is.
bool is_result_of_rankine(const std::string& path);

}  // namespace rk
