#include "tools/eval/report_options.h"

#include "engine/base/error.h"

namespace rk {

void ReportOptions::add_to(CLI::App& app) {
  app.add_option("--report", report,
                 "also write one page for a browser: metrics with intervals, similarities, curves, "
                 "the run's learning curves, queries with their first results, hardest classes; it "
                 "needs no network and can be sent to others (it holds small copies of pictures)")
      ->type_name("FILE");
  app.add_option(
         "--compare", compare,
         "two runs (folders, of which best.h5 is taken, or checkpoints) on the same --data, "
         "with the interval of their difference; --report draws them side by side")
      ->type_name("RUN_A RUN_B")
      ->expected(2);
  // What goes with a checkpoint goes with two runs as well.
  CLI::Option* checkpoint = app.get_option("--checkpoint");
  for (const char* name : {"--data", "--split", "--batch", "--workers", "--skip-bad"}) {
    CLI::Option* option = app.get_option(name);
    option->remove_needs(checkpoint);
    of_networks_.push_back(option);
  }
}

void ReportOptions::refuse_without_network(bool network) const {
  if (network || !compare.empty()) return;
  for (const CLI::Option* option : of_networks_) {
    if (option->count() == 0) continue;
    fail<UsageError>("{}: goes with --checkpoint FILE, or with --compare; leave it out",
                     option->get_name());
  }
}

}  // namespace rk
