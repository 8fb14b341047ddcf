// Draws queries and their results on one sheet: each query on the left in a frame, and to its right
// its results from best to worst, ten per line, each with its score below.
#pragma once

#include "data/images/image.h"

#include <string>
#include <vector>

namespace rk {

struct SheetPicture {
  std::string path;
  float score = 0;
};

struct SheetRow {
  std::string query;
  std::vector<SheetPicture> results;
};

// Whether pictures are turned upright by EXIF: they are shown as the network saw them.
struct SheetTurns {
  bool queries = false, results = false;
};

// A picture that cannot be read becomes a grey square, and the reason is appended to `problems`. At
// most kMostSheetRows rows, each with at most kMostSheetResults results.
inline constexpr std::size_t kMostSheetRows = 50, kMostSheetResults = 50;
Image contact_sheet(const std::vector<SheetRow>& rows, SheetTurns turns,
                    std::vector<std::string>& problems);

}  // namespace rk
