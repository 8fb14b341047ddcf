// Turns a decoded picture into the network's square uint8 input: Resize + CenterCrop for
// evaluation, or random crop, small affine and flip for training. Resampling follows Pillow
// (data/images/resize.h); the random resized crop and the affine matrix follow torchvision.
//
// Every draw is a function of (seed, epoch, data set index, copy), where copy numbers the
// appearances of one image in an epoch; the number of threads, the prefetch depth and resuming
// change nothing. Order: crop and resize, affine, flip.
#pragma once

#include "data/images/image.h"
#include "engine/base/random.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

enum class Crop {
  kCenter,         // Resize(resize), CenterCrop(size)
  kRandom,         // Resize(resize), a size x size window at a random position
  kRandomResized,  // area U(area_min, area_max), ratio log-uniform, resized to size x size
};

struct AugmentOptions {
  int size = 224;        // side of the output
  int resize = 256;      // short side before kCenter and kRandom
  bool stretch = false;  // both sides become `resize`, whatever the picture's shape
  Crop crop = Crop::kCenter;
  double area_min = 0.08, area_max = 1.0;  // share of the picture's area
  double ratio_min = 0.75, ratio_max = 4.0 / 3.0;
  double flip = 0;                    // probability of left-right
  double affine = 1;                  // probability that an affine below is applied at all
  double rotation = 0;                // degrees, U(-r, r)
  double shear = 0;                   // degrees along x, U(-s, s)
  double zoom_min = 1, zoom_max = 1;  // U(min, max)
  double translate = 0;               // share of size, U(-t, t) per axis
  bool fill_border = true;            // outside the picture: repeat its border, else `fill`
  std::array<std::uint8_t, 3> fill{};

  bool has_affine() const;
};

// Evaluation: Resize(resize), or Resize((resize, resize)) to stretch, then CenterCrop(size).
AugmentOptions center_crop(int size, int resize, bool stretch = false);

// The flag --augment: "none", or comma-separated key=value: crop=center|random|resized, area_min,
// area_max, ratio_min, ratio_max, flip, affine, rotation, shear, zoom_min, zoom_max, translate,
// fill=border|white|black|0..255. `base` gives size, resize and every value that `text` does not
// name. Throws UsageError.
AugmentOptions parse_augment(std::string_view text, AugmentOptions base);
std::string augment_text(const AugmentOptions& options);  // every value, for the settings of a run

CounterRandom augment_random(std::uint64_t seed, std::int64_t epoch, std::int64_t index,
                             std::int64_t copy);

// The window that torchvision's RandomResizedCrop.get_params would return if it drew from `random`.
Box random_resized_window(int width, int height, const AugmentOptions& options,
                          CounterRandom& random);

// Inverse map of torchvision's affine about the centre of a size x size picture: the output pixel
// with centre (x', y') = (x + 0.5, y + 0.5) samples the input at (m[0] x' + m[1] y' + m[2], m[3] x'
// + m[4] y' + m[5]).
std::array<double, 6> inverse_affine(int size, double degrees, double shear_degrees, double zoom,
                                     double translate_x, double translate_y);

// Resamples `in` into `out` (size x size x 3 each) through the inverse map, bilinear.
void warp_affine(const std::uint8_t* in, std::uint8_t* out, int size,
                 const std::array<double, 6>& inverse, const AugmentOptions& options);

// out: size x size x 3, HWC. `scratch` is reused between calls.
void augment(const Image& image, const AugmentOptions& options, CounterRandom random,
             std::uint8_t* out, std::vector<std::uint8_t>& scratch);

}  // namespace rk
