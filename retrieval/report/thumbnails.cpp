#include "retrieval/report/thumbnails.h"

#include "data/images/encode_jpeg.h"
#include "data/images/resize.h"
#include "engine/base/error.h"
#include "retrieval/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rk {

std::string thumbnail_uri(const Image& image) {
  constexpr int kQuality = 72;  // some 3 KB for a photo of this size
  const int side = std::max(image.width(), image.height());
  if (side <= kThumbnailSide) return data_uri("image/jpeg", encode_jpeg(image, kQuality));
  const auto scaled = [&](int length) {
    return std::max(1, static_cast<int>(std::lround(static_cast<double>(length) * kThumbnailSide /
                                                    static_cast<double>(side))));
  };
  const Image small = resize(image, scaled(image.width()), scaled(image.height()));
  return data_uri("image/jpeg", encode_jpeg(small, kQuality));
}

std::string Thumbnails::element(bool gallery, std::int64_t row, const std::string& alternative) {
  if (!there()) return "";
  const auto [at, fresh] = uris_.try_emplace({gallery, row});
  if (fresh) {
    try {
      at->second = thumbnail_uri(picture_(gallery, row));
    } catch (const InputError&) {
      // The image existed when it was embedded; the page says that it cannot be read any more.
    }
  }
  if (at->second.empty()) return "<span class=\"under\">picture cannot be read</span>";
  return fmt::format("<img src=\"{}\" alt=\"{}\"/>", at->second, escaped(alternative));
}

}  // namespace rk
