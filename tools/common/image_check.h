// Handles images that cannot be read. Most problems of a folder of photos show in its first
// thousands of images, which are checked before a run begins; the loader finds the rest.
#pragma once

#include "data/images/augment.h"
#include "data/loader/loader.h"
#include "engine/base/error.h"
#include "engine/device/context.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rk {

// Decodes the first 5000 images. Throws InputError if more than max_bad of them cannot be read (-1:
// the larger of 10 and 0.1 % of all images). The message names the first one (sorted by name); if
// there are several, all are listed in bad_files.txt in `folder`, which is created if necessary.
// Drawn data sets are not checked. Throws Interrupted if a signal asks to stop.
//
// Notes it if `evaluation` leaves out more than 55 % of the longer side of a typical picture.
void check_images(const Context& context, const Dataset& data, std::int64_t max_bad,
                  const std::string& folder, const AugmentOptions& evaluation, bool quiet);

// If pictures whose EXIF orientation is not upright, and was ignored, were loaded since
// data.rotated() was `before`, notes their number and how to have them turned. Returns the note.
std::string note_rotated(
    const Dataset& data, std::int64_t before = 0,
    const std::string& advice = ",exif=turn behind the folder turns pictures upright");

// bad_files.txt of a run: one line for each image that the loader left out.
class BadImageFile {
 public:
  explicit BadImageFile(std::string folder) : folder_(std::move(folder)) {}
  // Brings the file up to `all` bad images so far; without any there is no file. Returns a line for
  // each new one, and one if the file cannot be written: that ends no run, the next call tries
  // again.
  std::vector<std::string> update(const std::vector<BadImage>& all);

 private:
  std::string folder_;
  std::size_t told_ = 0;
  std::optional<std::size_t> listed_;  // none: the file may be that of an earlier start
};

}  // namespace rk
