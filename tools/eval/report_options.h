// Flags for eval's report, and for comparing two runs.
#pragma once

#include "tools/cli/flags.h"

#include <string>
#include <vector>

namespace rk {

class ReportOptions {
 public:
  std::string report;                // the HTML file; empty: none
  std::vector<std::string> compare;  // two runs, or empty

  // Call after the flags of NetworkOptions have been added.
  void add_to(Flags& flags);
  // Throws UsageError if a flag for networks was given without a network. network: whether
  // --checkpoint was given.
  void refuse_without_network(bool network) const;

 private:
  std::vector<Flag> of_networks_;
};

}  // namespace rk
