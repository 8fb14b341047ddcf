// Writes a result for scripts, completely or not at all.
#pragma once

#include "tools/cli/cli.h"

#include <nlohmann/json.hpp>

#include <string>

namespace rk {

// The name that stands for standard output: `--json -`.
inline constexpr const char* kStandardOutput = "-";
// Redirects standard output to standard error; only write_json("-") still writes to the original
// standard output. Has an effect once per process.
void give_standard_output_to_json();

// Replaces `path` atomically; a device or pipe (/dev/stdout) is written to directly. NaN and
// infinity become null; bytes that are not UTF-8 become the replacement character. Errors are
// InputErrors; ReaderGone if it is a pipe whose reader has ended.
void write_json(const std::string& path, const nlohmann::json& value);

// Writes the result of a program to --json, if that was given, with what made it: "program"
// (Rankine), "version", "device", "threads", and for a GPU its current clocks, power and
// temperature as "gpu".
void write_result(const CommonOptions& common, int threads, nlohmann::json result);

// Whether `path` is JSON with a top-level "program": "Rankine". Needs memory only for one string at
// a time, however large and deep the JSON is.
bool is_result_of_rankine(const std::string& path);

}  // namespace rk
