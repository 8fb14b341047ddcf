#include "tools/eval/report_options.h"

#include "engine/base/error.h"

namespace rk {

void ReportOptions::add_to(Flags& flags) {
  flags
      .add("--report", report,
           "also write one page for a browser: metrics with intervals, similarities, curves, "
           "the run's learning curves, queries with their first results, hardest classes; it "
           "needs no network and can be sent to others (it holds small copies of pictures)")
      .check(file_name())
      .type_name("FILE");
  flags
      .add("--compare", compare,
           "two runs (folders, of which best.h5 is taken, or checkpoints) on the same --data, "
           "with the interval of their difference; --report draws them side by side")
      .type_name("RUN_A RUN_B")
      .expected(1, 1000);  // so that a third run is refused, not ignored
  // The flags for a checkpoint also apply to two runs.
  Flag checkpoint = flags["--checkpoint"];
  for (const char* name :
       {"--data", "--split", "--batch", "--workers", "--precision", "--skip-bad"}) {
    Flag option = flags[name];
    option.needs_no_more(checkpoint);
    of_networks_.push_back(option);
  }
}

void ReportOptions::refuse_without_network(bool network) const {
  if (network || !compare.empty()) return;
  for (const Flag& option : of_networks_) {
    if (!option.given()) continue;
    fail<UsageError>(
        "{}: is for pictures that a network embeds; give --checkpoint RUN/best.h5, or --compare",
        option.name());
  }
}

}  // namespace rk
