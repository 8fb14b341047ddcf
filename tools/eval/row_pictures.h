// The pictures of rows for a page: as data sets load them, or from the paths that a file of
// embeddings holds.
#pragma once

#include "retrieval/report/thumbnails.h"
#include "tools/eval/inputs/described_rows.h"

#include <string>

namespace rk {

struct RowPictures {
  PictureOf picture;  // not set if no picture is there
  std::string none;   // why it is not set
};

// `rows` must outlive the result.
RowPictures pictures_of(const EvaluatedRows& rows);

}  // namespace rk
