// Pictures of a report as small JPEG files in the page itself, each decoded once.
#pragma once

#include "data/images/image.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace rk {

// The longer side in pixels; smaller images keep their size.
inline constexpr int kThumbnailSide = 96;

// "data:image/jpeg;base64,..."
std::string thumbnail_uri(const Image& image);

// Returns the picture of a row of the gallery or of the queries; throws InputError if it cannot be
// read.
using PictureOf = std::function<Image(bool gallery, std::int64_t row)>;

class Thumbnails {
 public:
  // Without pictures if `picture` is not set.
  explicit Thumbnails(const PictureOf& picture) : picture_(picture) {}

  bool there() const { return static_cast<bool>(picture_); }
  // An <img>; words instead if the image can no longer be read, and "" if there are no images.
  std::string element(bool gallery, std::int64_t row, const std::string& alternative);

 private:
  const PictureOf& picture_;
  std::map<std::pair<bool, std::int64_t>, std::string> uris_;  // empty: cannot be read
};

}  // namespace rk
