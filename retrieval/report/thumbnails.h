// Pictures of a report as small JPEG files in the page itself, each decoded once.
#pragma once

#include "retrieval/report/report.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace rk {

// The longer side in pixels; smaller images keep their size.
inline constexpr int kThumbnailSide = 96;

// "data:image/jpeg;base64,..."
std::string thumbnail_uri(const Image& image);

class Thumbnails {
 public:
  explicit Thumbnails(const Report& report) : report_(report) {}

  bool there() const { return static_cast<bool>(report_.picture); }
  // An <img>; words instead if the image can no longer be read, and "" if there are no images.
  std::string element(bool gallery, std::int64_t row, const std::string& alternative);

 private:
  const Report& report_;
  std::map<std::pair<bool, std::int64_t>, std::string> uris_;  // empty: cannot be read
};

}  // namespace rk
