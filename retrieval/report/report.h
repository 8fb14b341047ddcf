// The result of an evaluation as one self-contained page: it needs no network access, no other
// file, and no script except to browse the queries. Or the results of two networks on the same
// queries, side by side, with the interval of their difference.
//
// All text that comes from files is escaped, and the page's Content-Security-Policy allows only its
// own style and script. The page is also well-formed XML. Its size does not grow with the number of
// queries: most of it is some 400 thumbnails of 96 pixels.
#pragma once

#include "retrieval/evaluate.h"
#include "retrieval/nearest.h"
#include "retrieval/passes/embedding_set.h"
#include "retrieval/report/facts.h"
#include "retrieval/report/learning_record.h"
#include "retrieval/report/thumbnails.h"
#include "retrieval/statistics/bootstrap.h"

#include <optional>
#include <string>
#include <vector>

namespace rk {

struct ReportedRun {
  std::string name;                      // in legends and tables: "runs/a"
  Metrics metrics;                       // with per_query
  RankIntervals intervals;               // for metrics.recall_at
  Neighbours neighbours;                 // of every query, at least one each
  std::optional<LearningRecord> record;  // if the network comes from a run
  ReportFacts facts;                     // files, hashes
  std::optional<double> nmi = {};        // if the rows were clustered
  ReportFacts settings = {};             // what the network was trained with, if that is known
  bool rows_beyond_one = false;          // some are longer than 1 by more than rounding
};

struct Report {
  std::string title;
  std::string data;                // queries and gallery, in words
  std::string protocol;            // in words
  std::vector<std::string> notes;  // what the figures must be read with
  // Labels, names, categories and paths; embeddings are not read. gallery: null if queries are
  // searched among themselves.
  const EmbeddingSet* queries = nullptr;
  const EmbeddingSet* gallery = nullptr;
  std::vector<ReportedRun> runs;            // one or two
  std::optional<RankIntervals> difference;  // for two runs: the second minus the first
  double confidence = 0.95;                 // of all intervals
  std::string resampled = "queries";        // the units drawn for the intervals
  PictureOf picture;  // not set: there are no pictures, and no_pictures says why
  std::string no_pictures;
  std::string no_training;  // why no run has a record; empty without a record: training is left out
  // Rows are longer than 1, so that scores leave [-1, 1] and histograms count them at their ends.
  bool scores_leave_range = false;
  ReportFacts facts;  // of the evaluation: command, version, date
};

std::string report_page(const Report& report);

}  // namespace rk
