// What a search found, as one self-contained page like that of a report: each query beside its
// results, from best to worst, with their classes, files and scores.
#pragma once

#include "retrieval/nearest.h"
#include "retrieval/passes/embedding_set.h"
#include "retrieval/report/facts.h"
#include "retrieval/report/thumbnails.h"

#include <cstddef>
#include <string>
#include <vector>

namespace rk {

// What a page shows: more pictures would make it large.
inline constexpr std::size_t kMostSearchQueries = 50, kMostSearchResults = 50;

struct FoundPictures {
  std::string title;
  std::string data;                // queries and index, in words
  std::vector<std::string> notes;  // what the results must be read with
  const EmbeddingSet& queries;     // with paths
  const EmbeddingSet& gallery;     // labels, and names and paths if it has them
  const Neighbours& found;         // of each query
  PictureOf picture;               // not set: no_pictures says why
  std::string no_pictures;
  ReportFacts facts;  // command, version, date
};

std::string search_page(const FoundPictures& search);

}  // namespace rk
