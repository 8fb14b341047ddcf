// The cases of a folder laid out like tests/golden/losses (its README is their definition), for the
// unit tests and for the golden runner.
#pragma once

#include "engine/driver/device.h"

#include <filesystem>
#include <string>
#include <vector>

namespace rk::golden {

struct LossVerdict {
  bool skipped = false;
  bool passed = false;
  std::string detail;  // errors and tolerances, or why it was skipped
};

std::vector<std::filesystem::path> loss_cases(const std::filesystem::path& folder);

// Runs one case through the registry in precision S (on a GPU: float). `tolerance_factor`
// multiplies the file's tolerances, which are made for float; give less than 1 for double.
template <class S>
LossVerdict check_loss_case(const std::filesystem::path& file, double tolerance_factor,
                            const Device& device = {});

}  // namespace rk::golden
