// The cases of a folder laid out like tests/golden/metrics (its README is their definition), for
// the unit tests and for the golden runner.
#pragma once

#include "engine/device/context.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace rk::golden {

struct MetricVerdict {
  bool passed = false;
  std::string detail;  // the worst errors and their tolerances, or what is wrong
};

// <folder>/*.h5 and <folder>/bad/*.h5, sorted.
std::vector<std::filesystem::path> metric_cases(const std::filesystem::path& folder);
std::vector<std::filesystem::path> bad_metric_cases(const std::filesystem::path& folder);

// Compares every expected key of the case: those of VehicleID's official protocol, if the case has
// any, with `drawn`, all others with `metrics`, as `eval --per-query --nmi --json` writes them.
MetricVerdict compare_with_case(const std::filesystem::path& file, const nlohmann::json& metrics,
                                const nlohmann::json& drawn);
bool has_drawn_galleries(const std::filesystem::path& file);

// Reads the case as `eval` reads its files, evaluates it and compares every expected key.
MetricVerdict check_metric_case(const std::filesystem::path& file, const Context& context);

// Passes if reading is refused with one line that names the file.
MetricVerdict check_bad_metric_case(const std::filesystem::path& file);

}  // namespace rk::golden
