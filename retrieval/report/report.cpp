#include "retrieval/report/report.h"

#include "retrieval/report/chart.h"
#include "retrieval/report/figures.h"
#include "retrieval/report/html.h"
#include "retrieval/report/page.h"
#include "retrieval/report/query_cards.h"
#include "retrieval/report/tables.h"

#include <fmt/format.h>

#include <vector>

namespace rk {
namespace {

std::string charts(const std::vector<Chart>& all, const std::string& id) {
  // Four in rows of three would leave one alone.
  std::string out = fmt::format("<div class=\"charts{}\">\n", all.size() == 4 ? " pairs" : "");
  for (std::size_t i = 0; i < all.size(); ++i)
    out += chart_figure(all[i], fmt::format("{}{}", id, i));
  return out + "</div>\n";
}

std::string similarities(const Report& report) {
  std::string out;
  if (report.scores_leave_range) {
    out =
        "<p>Rows are longer than 1, so that their scores leave [-1, 1], where the histograms and "
        "JSD compare those of one class and of others: they would show the lengths. Dividing "
        "each row by its length (<code>--normalize</code>) makes scores cosine "
        "similarities.</p>\n";
  }
  const std::vector<Chart> all = similarity_charts(report);
  return all.empty() ? out : out + charts(all, "similarity");
}

// Empty if there was none to speak of.
std::string training(const Report& report) {
  const std::vector<Chart> all = learning_charts(report);
  if (!all.empty()) return charts(all, "learning");
  if (report.no_training.empty()) return "";
  return fmt::format("<p>Nothing is known of the training: {}.</p>\n", escaped(report.no_training));
}

std::string origin(const Report& report) {
  std::string out = facts_list(report.facts);
  for (const ReportedRun& run : report.runs) {
    ReportFacts facts = run.facts;
    facts.insert(facts.end(), run.settings.begin(), run.settings.end());
    if (facts.empty()) continue;
    out += fmt::format("<h3>{}</h3>\n", escaped(run.name)) + facts_list(facts);
  }
  return out;
}

}  // namespace

std::string report_page(const Report& report) {
  const PageHead head = {report.title, report.data, {"Protocol: " + report.protocol}, report.notes};
  return page_of(
      head, {{"result", "Result", metrics_section(report)},
             {"settings", "Settings that differ", settings_section(report)},
             {"similarities", "Similarities", similarities(report)},
             {"curves", "Curves",
              charts({recall_chart(report), roc_chart(report), precision_chart(report)}, "curve")},
             {"training", "Training", training(report)},
             {"queries", "Queries", query_browser(report)},
             {"classes", "Classes", classes_section(report)},
             {"origin", "Where this comes from", origin(report)}});
}

}  // namespace rk
