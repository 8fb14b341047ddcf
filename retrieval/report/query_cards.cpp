#include "retrieval/report/query_cards.h"

#include "engine/base/english.h"
#include "engine/base/integers.h"
#include "retrieval/report/cards.h"
#include "retrieval/report/html.h"
#include "retrieval/report/query_choice.h"
#include "retrieval/report/thumbnails.h"

#include <fmt/format.h>

#include <vector>

namespace rk {
namespace {

constexpr std::size_t kQueries = 24, kQueriesOfTwo = 12;  // per group, for one run and for two
constexpr std::size_t kResults = 8, kResultsOfTwo = 7;    // per query, for one run and for two

class Cards {
 public:
  explicit Cards(const Report& report)
      : report_(report),
        queries_(*report.queries),
        gallery_(report.gallery != nullptr ? *report.gallery : *report.queries),
        pictures_(report.picture),
        two_(report.runs.size() > 1) {}

  std::string group(const std::string& name, const std::string& title, const std::string& remark,
                    const std::vector<std::int64_t>& rows) {
    if (rows.empty()) return "";
    shown_ += rows.size();
    std::string out =
        fmt::format("<section data-group=\"{}\">\n<h3>{}</h3>\n<p class=\"under\">{}</p>\n", name,
                    escaped(title), escaped(remark));
    for (const std::int64_t row : rows) out += card(row);
    return out + "</section>\n";
  }

  // "12 of 34 queries"
  std::string count() const {
    return fmt::format("{} of {}", shown_, counted(queries_.labels.size(), "query"));
  }

 private:
  std::string card(std::int64_t query) {
    const std::int64_t label = queries_.labels[at(query)];
    const std::string of = class_name(queries_, label);
    std::string out = fmt::format(
        "<article class=\"query\" data-find=\"{} {}\">\n<h4>{}</h4>\n<p class=\"under\">{}</p>\n",
        escaped(of), escaped(path_of(queries_, query)), escaped(of),
        escaped(path_of(queries_, query)));
    for (const ReportedRun& run : report_.runs) {
      out += fmt::format("<p class=\"under\">{}</p>\n", escaped(said_of(run, query)));
      out += "<ul class=\"row\">\n";
      if (&run == report_.runs.data())
        out += query_item(pictures_, queries_, query, fmt::format("query of class {}", of));
      out += results(run, query, label) + "</ul>\n";
    }
    return out + "</article>\n";
  }

  std::string said_of(const ReportedRun& run, std::int64_t query) const {
    const PerQuery& all = run.metrics.per_query;
    const auto q = static_cast<std::size_t>(query);
    return fmt::format("{}{} to find; the first is result {} of {}; average precision {:.4f}",
                       two_ ? run.name + ": " : "", all.num_relevant[q], all.first_hit_rank[q],
                       all.num_candidates[q], all.ap[q]);
  }

  std::string results(const ReportedRun& run, std::int64_t query, std::int64_t label) {
    std::string out;
    std::size_t place = 0;
    for (const Neighbour& found : run.neighbours.of(query)) {
      if (++place > (two_ ? kResultsOfTwo : kResults)) break;
      const std::int64_t own = gallery_.labels[at(found.row)];
      const std::string of = class_name(gallery_, own);
      const char* verdict = own == label ? "right" : "wrong";
      out += fmt::format(
          "<li class=\"item {0}\">{1}<b>{2} {3} {0}</b><span class=\"clip\">{4}{5}</span>"
          "<span class=\"under\">{6:.3f}</span></li>\n",
          verdict,
          pictures_.element(report_.gallery != nullptr, found.row,
                            fmt::format("result {} of class {}, {}", place, of, verdict)),
          own == label ? "\xE2\x9C\x93" : "\xE2\x9C\x97", place, escaped_to_break(of),
          pictures_.there() ? std::string()
                            : fmt::format(": {}", escaped_to_break(file_of(gallery_, found.row))),
          static_cast<double>(found.score));
    }
    return out;
  }

  const Report& report_;
  const EmbeddingSet& queries_;
  const EmbeddingSet& gallery_;
  Thumbnails pictures_;
  bool two_;
  std::size_t shown_ = 0;
};

}  // namespace

std::string query_browser(const Report& report) {
  constexpr std::uint64_t kSeed = 0;  // fixed: the same data always show the same queries
  constexpr const char* kDrawn = "Drawn at random";
  constexpr const char* kOfDrawn =
      "Of those that do not stand above: what is common, not what is striking.";
  Cards cards(report);
  std::string groups;
  const PerQuery& first = report.runs.front().metrics.per_query;
  if (report.runs.size() > 1) {
    const PerQuery& second = report.runs.back().metrics.per_query;
    const std::string a = report.runs.front().name, b = report.runs.back().name;
    std::vector<std::int64_t> shown = most_gained(first, second, kQueriesOfTwo);
    groups += cards.group("gained", fmt::format("Better in {}", b),
                          "The queries whose average precision rose most, most first.", shown);
    const std::vector<std::int64_t> lost = most_gained(second, first, kQueriesOfTwo);
    groups += cards.group("lost", fmt::format("Better in {}", a),
                          "The queries whose average precision fell most, most first.", lost);
    shown.insert(shown.end(), lost.begin(), lost.end());
    groups +=
        cards.group("random", kDrawn, kOfDrawn, random_queries(first, kQueriesOfTwo, kSeed, shown));
  } else {
    const std::vector<std::int64_t> hard = hardest_queries(first, kQueries);
    groups +=
        cards.group("hardest", "The hardest",
                    "Lowest average precision first: mistakes of the network, and often of the "
                    "labels.",
                    hard);
    groups += cards.group("random", kDrawn, kOfDrawn, random_queries(first, kQueries, kSeed, hard));
  }
  std::string out;
  if (!report.picture) {
    out += fmt::format("<p>There are no pictures to show: {}. Results are named instead.</p>\n",
                       escaped(report.no_pictures));
  }
  return out + fmt::format(
                   "<p>{}, each with its first results; the number under a result is its "
                   "similarity.</p>\n<div id=\"browser\">\n{}</div>\n",
                   cards.count(), groups);
}

}  // namespace rk
