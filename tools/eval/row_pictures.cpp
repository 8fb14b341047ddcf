#include "tools/eval/row_pictures.h"

#include "data/images/exif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>

namespace rk {
namespace {

// Why the pictures of rows from a file cannot be shown; empty: one of some rows is there. Single
// pictures that cannot be read are told where they are shown.
std::string why_none(const DescribedRows& rows) {
  if (rows.picture) return "";
  if (rows.set.paths.empty()) return fmt::format("{} does not say where they are", rows.name);
  constexpr std::int64_t kTried = 16;
  for (std::int64_t i = 0; i < std::min(kTried, rows.count()); ++i) {
    const std::int64_t row = i * rows.count() / std::min(kTried, rows.count());
    std::error_code ignored;
    if (std::filesystem::is_regular_file(picture_path(rows, row), ignored)) return "";
  }
  return fmt::format("{} is not where {} says it is", rows.set.paths.front(), rows.name);
}

Image picture_of(const DescribedRows& rows, std::int64_t row) {
  if (rows.picture) return rows.picture(row);
  return read_photo(picture_path(rows, row), rows.set.exif == "turn").image;  // as embedded
}

}  // namespace

RowPictures pictures_of(const EvaluatedRows& rows) {
  RowPictures out;
  out.none = why_none(rows.queries);
  if (out.none.empty() && rows.gallery) out.none = why_none(*rows.gallery);
  if (!out.none.empty()) return out;
  out.picture = [&rows](bool of_gallery, std::int64_t row) {
    return picture_of(of_gallery ? *rows.gallery : rows.queries, row);
  };
  return out;
}

}  // namespace rk
