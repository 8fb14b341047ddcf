#include "retrieval/report/report.h"

#include "retrieval/report/chart.h"
#include "retrieval/report/figures.h"
#include "retrieval/report/html.h"
#include "retrieval/report/query_cards.h"
#include "retrieval/report/style.h"
#include "retrieval/report/tables.h"

#include <fmt/format.h>

#include <vector>

namespace rk {
namespace {

std::string head(const Report& report) {
  return fmt::format(
      "{}<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src &#39;none&#39;; img-src data:; style-src {}; script-src {}; base-uri "
      "&#39;none&#39;; form-action &#39;none&#39;\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"referrer\" content=\"no-referrer\"/>\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      kReportBegins, escaped(source_hash(kReportStyle)), escaped(source_hash(kReportScript)),
      escaped(report.title), kReportStyle);
}

std::string section(const std::string& id, const std::string& title, const std::string& contents) {
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n",
                     id, title, contents);
}

std::string charts(const std::vector<Chart>& all, const std::string& id) {
  // Four in rows of three would leave one alone.
  std::string out = fmt::format("<div class=\"charts{}\">\n", all.size() == 4 ? " pairs" : "");
  for (std::size_t i = 0; i < all.size(); ++i)
    out += chart_figure(all[i], fmt::format("{}{}", id, i));
  return out + "</div>\n";
}

std::string training(const Report& report) {
  const std::vector<Chart> all = learning_charts(report);
  if (!all.empty()) return charts(all, "learning");
  return "<p>Nothing is known of the training: the embeddings come from a file, or no "
         "metrics.jsonl of a run lies beside the network.</p>\n";
}

std::string origin(const Report& report) {
  std::string out = facts_list(report.facts);
  for (const ReportedRun& run : report.runs) {
    if (run.facts.empty()) continue;
    out += fmt::format("<h3>{}</h3>\n", escaped(run.name)) + facts_list(run.facts);
  }
  return out;
}

}  // namespace

std::string report_page(const Report& report) {
  struct Part {
    const char *id, *title;
    std::string contents;
  };
  const std::vector<Part> parts = {
      {"result", "Result", metrics_section(report)},
      {"similarities", "Similarities", charts(similarity_charts(report), "similarity")},
      {"curves", "Curves",
       charts({recall_chart(report), roc_chart(report), precision_chart(report)}, "curve")},
      {"training", "Training", training(report)},
      {"queries", "Queries", query_browser(report)},
      {"classes", "Classes", classes_section(report)},
      {"origin", "Where this comes from", origin(report)}};
  std::string out = head(report) + "<body>\n<a class=\"skip\" href=\"#result\">To the result</a>\n";
  out += fmt::format("<header>\n<h1>{}</h1>\n<p>{}</p>\n<p class=\"under\">Protocol: {}.</p>\n",
                     escaped(report.title), escaped(report.data), escaped(report.protocol));
  for (const std::string& text : report.notes) {
    out += fmt::format("<p class=\"under\">Note: {}.</p>\n", escaped(text));
  }
  out += "<nav aria-label=\"Parts of this page\"><ul>\n";
  for (const Part& part : parts) {
    out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", part.id, part.title);
  }
  out += "</ul></nav>\n</header>\n<main>\n";
  for (const Part& part : parts) out += section(part.id, part.title, part.contents);
  out += fmt::format("</main>\n<script>{}</script>\n</body>\n</html>\n", kReportScript);
  return out;
}

}  // namespace rk
