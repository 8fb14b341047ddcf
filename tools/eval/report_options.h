// Flags for eval's report, and for two runs side by side.
#pragma once

#include "tools/cli/flags.h"

#include <string>
#include <vector>

namespace rk {

class ReportOptions {
 public:
  std::string report;                // the page; empty: none
  std::vector<std::string> compare;  // two runs, or nothing

  // After the flags of NetworkOptions.
  void add_to(Flags& flags);
  // UsageError where a flag for networks was given and there is none; network: --checkpoint is.
  void refuse_without_network(bool network) const;

 private:
  std::vector<Flag> of_networks_;
};

}  // namespace rk
