// Flags for eval's report, and for comparing two evaluations.
#pragma once

#include "tools/cli/flags/flags.h"

#include <string>
#include <vector>

namespace rk {

struct ReportOptions {
  std::string report;                // the HTML file; empty: none
  std::vector<std::string> compare;  // two runs or files of embeddings, or empty

  void add_to(Flags& flags);
};

}  // namespace rk
