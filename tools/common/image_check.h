// Images that cannot be read. Most mistakes in a folder of photos show in its first thousands,
// which are looked at before a run begins; the loader finds the rest.
#pragma once

#include "data/loader/loader.h"
#include "engine/device/context.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rk {

// Decodes the first 5000. InputError naming the first of those that cannot be read (in the order of
// their names) where they are more than max_bad (-1: the larger of 10 and 0.1 % of the images);
// where they are too many to be named, bad_files.txt in `folder`, made where it is not there, lists
// them. Sets that are drawn are not looked at. Throws Interrupted where a signal asks to stop.
void check_images(const Context& context, const Dataset& data, std::int64_t max_bad,
                  const std::string& folder, bool quiet);

// Notes how many pictures were loaded since data.rotated() was `before` whose EXIF orientation is
// not upright and was ignored, and which option applies it.
void note_rotated(const Dataset& data, std::int64_t before = 0);

// bad_files.txt of a run: those that the loader found and left out, a line each.
class UnreadableImages {
 public:
  explicit UnreadableImages(std::string folder) : folder_(std::move(folder)) {}
  // `all` so far. Returns a line for each that is new.
  std::vector<std::string> update(const std::vector<BadImage>& all);

 private:
  std::string folder_;
  std::size_t known_ = 0;
};

}  // namespace rk
