// The result of an evaluation as one page that needs nothing else: no network, no script (but to
// browse the queries), no other file. Or of two networks on the same queries, side by side with the
// interval of their difference.
//
// All text that comes from files is escaped, and the page's Content-Security-Policy lets its own
// style and script run alone. The page is well-formed XML too. Its size does not grow with the
// queries: some 400 thumbnails of 96 pixels are most of it.
#pragma once

#include "data/images/image.h"
#include "retrieval/evaluate.h"
#include "retrieval/nearest.h"
#include "retrieval/passes/embedding_set.h"
#include "retrieval/report/learning_record.h"
#include "retrieval/statistics/bootstrap.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rk {

using ReportFacts = std::vector<std::pair<std::string, std::string>>;  // name, value

struct ReportedRun {
  std::string name;                      // in legends and tables: "runs/a"
  Metrics metrics;                       // with per_query
  RankIntervals intervals;               // of metrics.recall_at
  Neighbours neighbours;                 // of every query, one or more of each
  std::optional<LearningRecord> record;  // where the network is of a run
  ReportFacts facts;                     // settings, hashes
};

struct Report {
  std::string title;
  std::string data;      // what was searched for in what
  std::string protocol;  // how
  // Labels, names, categories and paths; embeddings are not looked at. gallery: null where queries
  // are searched for among themselves.
  const EmbeddingSet* queries = nullptr;
  const EmbeddingSet* gallery = nullptr;
  std::vector<ReportedRun> runs;            // one or two
  std::optional<RankIntervals> difference;  // of two: the second's less the first's
  double confidence = 0.95;                 // of all intervals
  std::string resampled = "queries";        // what was drawn for them
  // The picture of a row of the gallery or of the queries; InputError where it cannot be read. Not
  // set: there are none, and no_pictures says why.
  std::function<Image(bool gallery, std::int64_t row)> picture;
  std::string no_pictures;
  ReportFacts facts;  // of the evaluation: command, version, date
};

// How every page begins, so that a program knows its own.
inline constexpr const char* kReportBegins = "<!DOCTYPE html>\n<!-- A report by Rankine -->\n";

std::string report_page(const Report& report);

}  // namespace rk
