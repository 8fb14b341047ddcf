// A result for scripts: written whole or not at all.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace rk {

// The name that stands for standard output: `--json -`.
inline constexpr const char* kStandardOutput = "-";
// From now on what is printed to standard output goes to standard error, and write_json("-") alone
// to what was standard output. Once in a process.
void give_standard_output_to_json();

// Replaces `path` atomically; a device or pipe (/dev/stdout) is written to as it is. Not-a-number
// and infinity become null, bytes that are no UTF-8 the replacement character. Where "device" is a
// GPU its clocks, power and temperature at this moment are added as "gpu". Errors are InputError.
//
// A "version" at the top is that of a result: "program": "Rankine" is put beside it.
void write_json(const std::string& path, const nlohmann::json& value);

// Whether `path` is JSON that says at its top that it is a result of Rankine's. Takes memory for no
// more than one of its strings, however large and however deep it is.
bool is_result_of_rankine(const std::string& path);

}  // namespace rk
