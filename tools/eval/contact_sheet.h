// Pictures and what was found for them on one sheet: each query on the left in a frame, to its
// right its results from best to worst, ten a line, each with its score below.
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

// A picture that cannot be read is a grey square, and its reason is added to `problems`. At most
// kMostSheetRows rows, of each the first kMostSheetResults.
inline constexpr std::size_t kMostSheetRows = 50, kMostSheetResults = 50;
Image contact_sheet(const std::vector<SheetRow>& rows, SheetTurns turns,
                    std::vector<std::string>& problems);

}  // namespace rk
