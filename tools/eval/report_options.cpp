#include "tools/eval/report_options.h"

namespace rk {

void ReportOptions::add_to(Flags& flags) {
  flags
      .add("--report", report,
           "also write one page for a browser: metrics with intervals, similarities, curves, "
           "the run's learning curves, queries with their first results, hardest classes; with "
           "--index, the queries beside what was found; it needs no network and can be sent to "
           "others (it holds small copies of pictures)")
      .check(file_name())
      .type_name("FILE");
  flags
      .add("--compare", compare,
           "two runs (folders, of which best.h5 is taken, or checkpoints) on the same --data, or, "
           "without --data, two files of embeddings of the same pictures in the same order, with "
           "the interval of their difference; --report draws them side by side")
      .type_name("A B")
      .default_text("")
      .expected(1, 1000);  // one too many is refused, not ignored
}

}  // namespace rk
