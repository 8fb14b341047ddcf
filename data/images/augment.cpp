#include "data/images/augment.h"

#include "data/images/resize.h"
#include "data/images/transform.h"
#include "data/spec.h"
#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

namespace rk {
namespace {

// The numbers of parse_augment(), in the order of augment_text().
constexpr std::array kNumbers = std::to_array<NumberKey<AugmentOptions>>({
    {"area_min", &AugmentOptions::area_min, 0.001, 1},
    {"area_max", &AugmentOptions::area_max, 0.001, 1},
    {"ratio_min", &AugmentOptions::ratio_min, 0.01, 100},
    {"ratio_max", &AugmentOptions::ratio_max, 0.01, 100},
    {"flip", &AugmentOptions::flip, 0, 1},
    {"affine", &AugmentOptions::affine, 0, 1},
    {"rotation", &AugmentOptions::rotation, 0, 180},
    {"shear", &AugmentOptions::shear, 0, 80},
    {"zoom_min", &AugmentOptions::zoom_min, 0.1, 10},
    {"zoom_max", &AugmentOptions::zoom_max, 0.1, 10},
    {"translate", &AugmentOptions::translate, 0, 1},
});

struct CropName {
  const char* name;
  Crop crop;
};
constexpr std::array kCrops{CropName{"center", Crop::kCenter}, CropName{"random", Crop::kRandom},
                            CropName{"resized", Crop::kRandomResized}};

void set_crop(AugmentOptions& options, const std::string& value) {
  std::vector<std::string> names;
  for (const CropName& each : kCrops) {
    if (value == each.name) {
      options.crop = each.crop;
      return;
    }
    names.emplace_back(each.name);
  }
  fail<UsageError>("--augment: no crop '{}'; {}", value, suggestion(value, names));
}

void set_fill(AugmentOptions& options, const DataSpec& spec, const std::string& value) {
  options.fill_border = value == "border";
  if (options.fill_border) return;
  if (value == "white") return options.fill.fill(255);
  if (value == "black") return options.fill.fill(0);
  if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos) {
    fail<UsageError>("--augment: no fill '{}'; use border, white, black or a level from 0 to 255",
                     value);
  }
  options.fill.fill(static_cast<std::uint8_t>(spec.integer("fill", 0, 0, 255)));
}

// Checks the merged options, since either bound may come from the defaults rather than from the
// flag.
void refuse_crossed(const char* what, double least, double most) {
  if (least <= most) return;
  fail<UsageError>("--augment: {0}_min={1} is above {0}_max={2}; give both, the smaller as {0}_min",
                   what, least, most);
}

// Python's round(): halves to even.
int round_even(double value) { return static_cast<int>(std::nearbyint(value)); }

Image cropped(const Image& image, const AugmentOptions& options, CounterRandom& random) {
  const int size = options.size;
  const ImageTransform centre = resize_and_crop(options.resize, options.stretch, size);
  switch (options.crop) {
    case Crop::kCenter: return apply(centre, image);
    case Crop::kRandom: {
      const ImageSize resized = resized_size(image.width(), image.height(), centre);
      const auto left = static_cast<int>(random.below(resized.width - size + 1));
      const auto top = static_cast<int>(random.below(resized.height - size + 1));
      return resize_part(image, {0, 0, image.width(), image.height()},
                         static_cast<int>(resized.width), static_cast<int>(resized.height),
                         {left, top, size, size});
    }
    case Crop::kRandomResized:
      return resize(image, random_resized_window(image.width(), image.height(), options, random),
                    size, size);
  }
  return {};
}

}  // namespace

bool AugmentOptions::has_affine() const {
  return affine > 0 &&
         (rotation > 0 || shear > 0 || translate > 0 || zoom_min != 1 || zoom_max != 1);
}

AugmentOptions center_crop(int size, int resize, bool stretch) {
  AugmentOptions options;
  options.size = size;
  options.resize = resize;
  options.stretch = stretch;
  return options;
}

AugmentOptions parse_augment(std::string_view text, AugmentOptions base) {
  if (text == "none") text = {};
  DataSpec spec{"--augment", "", parse_key_values(text, "--augment")};
  std::vector<std::string> known{"crop", "fill"};
  for (const auto& key : kNumbers) known.emplace_back(key.name);
  for (const auto& [key, value] : spec.options) {
    require_known("--augment", "no option '{}'", key, known);
    if (key == "crop") set_crop(base, value);
    if (key == "fill") set_fill(base, spec, value);
    for (const auto& number : kNumbers) {
      if (key == number.name) base.*number.value = spec.number(key, 0, number.low, number.high);
    }
  }
  refuse_crossed("area", base.area_min, base.area_max);
  refuse_crossed("ratio", base.ratio_min, base.ratio_max);
  refuse_crossed("zoom", base.zoom_min, base.zoom_max);
  if (base.crop == Crop::kRandom && base.resize < base.size) {
    fail<UsageError>(
        "--augment: crop=random of {} pixels from pictures resized to {}; resize to more",
        base.size, base.resize);
  }
  return base;
}

std::string augment_text(const AugmentOptions& options) {
  std::string text = "crop=";
  for (const CropName& each : kCrops) {
    if (each.crop == options.crop) text += each.name;
  }
  for (const auto& key : kNumbers) {
    text += fmt::format(",{}={}", key.name, options.*(key.value));
  }
  return text + (options.fill_border ? ",fill=border" : fmt::format(",fill={}", options.fill[0]));
}

CounterRandom augment_random(std::uint64_t seed, std::int64_t epoch, std::int64_t index,
                             std::int64_t copy) {
  expect(index >= 0 && index < kMostIndices && copy >= 0 && copy < kMostCopies,
         "[augment] expected index < 2^36 and copy < 2^28, got {} and {}", index, copy);
  return CounterRandom(seed, random_stream(RandomUse::kAugment, epoch),
                       static_cast<std::uint64_t>(copy * kMostIndices + index));
}

Box random_resized_window(int width, int height, const AugmentOptions& options,
                          CounterRandom& random) {
  const double area = static_cast<double>(width) * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(options.area_min, options.area_max);
    const double ratio =
        std::exp(random.uniform(std::log(options.ratio_min), std::log(options.ratio_max)));
    const int w = round_even(std::sqrt(target * ratio));
    const int h = round_even(std::sqrt(target / ratio));
    if (w > 0 && w <= width && h > 0 && h <= height) {
      const auto top = static_cast<int>(random.below(height - h + 1));
      const auto left = static_cast<int>(random.below(width - w + 1));
      return {left, top, w, h};
    }
  }
  // The largest centred window with an allowed ratio, at least one pixel a side (torchvision may
  // return zero).
  int w = width, h = height;
  const double ratio = static_cast<double>(width) / height;
  if (ratio < options.ratio_min) {
    h = std::clamp(round_even(w / options.ratio_min), 1, height);
  } else if (ratio > options.ratio_max) {
    w = std::clamp(round_even(h * options.ratio_max), 1, width);
  }
  return {(width - w) / 2, (height - h) / 2, w, h};
}

std::array<double, 6> inverse_affine(int size, double degrees, double shear_degrees, double zoom,
                                     double translate_x, double translate_y) {
  const double rotation = degrees * std::numbers::pi / 180;
  const double shear = std::tan(shear_degrees * std::numbers::pi / 180);
  // Forward: [a b; c d] = rotation * x-shear, times zoom, about the centre, then the translation.
  const double a = std::cos(rotation), c = std::sin(rotation);
  const double b = -a * shear - c, d = -c * shear + a;
  std::array<double, 6> m{d / zoom, -b / zoom, 0, -c / zoom, a / zoom, 0};
  const double centre = 0.5 * size;
  m[2] = centre - m[0] * (centre + translate_x) - m[1] * (centre + translate_y);
  m[5] = centre - m[3] * (centre + translate_x) - m[4] * (centre + translate_y);
  return m;
}

void warp_affine(const std::uint8_t* in, std::uint8_t* out, int size,
                 const std::array<double, 6>& m, const AugmentOptions& options) {
  const auto at = [&](int x, int y) {
    if (x < 0 || y < 0 || x >= size || y >= size) {
      if (!options.fill_border) return options.fill.data();
      x = std::clamp(x, 0, size - 1);
      y = std::clamp(y, 0, size - 1);
    }
    return in + (static_cast<std::ptrdiff_t>(y) * size + x) * 3;
  };
  // More than one pixel outside the picture the result is constant; clamping also keeps the int in
  // range.
  const double low = -2, high = size + 1.0;
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      const double sx = std::clamp(m[0] * (x + 0.5) + m[1] * (y + 0.5) + m[2] - 0.5, low, high);
      const double sy = std::clamp(m[3] * (x + 0.5) + m[4] * (y + 0.5) + m[5] - 0.5, low, high);
      const double fx = std::floor(sx), fy = std::floor(sy);
      const auto wx = static_cast<float>(sx - fx), wy = static_cast<float>(sy - fy);
      const int x0 = static_cast<int>(fx), y0 = static_cast<int>(fy);
      const std::uint8_t* p00 = at(x0, y0);
      const std::uint8_t* p01 = at(x0 + 1, y0);
      const std::uint8_t* p10 = at(x0, y0 + 1);
      const std::uint8_t* p11 = at(x0 + 1, y0 + 1);
      for (int c = 0; c < 3; ++c) {
        const float above = static_cast<float>(p00[c]) + wx * static_cast<float>(p01[c] - p00[c]);
        const float below = static_cast<float>(p10[c]) + wx * static_cast<float>(p11[c] - p10[c]);
        *out++ = static_cast<std::uint8_t>(above + wy * (below - above) + 0.5F);
      }
    }
  }
}

void augment(const Image& image, const AugmentOptions& options, CounterRandom random,
             std::uint8_t* out, std::vector<std::uint8_t>& scratch) {
  const int size = options.size;
  // The crop takes a varying number of draws, so it draws last.
  const bool flip = random.uniform() < options.flip;
  const bool affine = random.uniform() < options.affine && options.has_affine();
  const auto symmetric = [&random](double range) { return random.uniform(-range, range); };
  const double degrees = symmetric(options.rotation);
  const double shear = symmetric(options.shear);
  const double zoom = random.uniform(options.zoom_min, options.zoom_max);
  const double dx = symmetric(options.translate) * size;
  const double dy = symmetric(options.translate) * size;

  const Image square = cropped(image, options, random);
  const std::uint8_t* pixels = square.data();
  if (affine) {
    scratch.resize(square.bytes());
    warp_affine(pixels, scratch.data(), size, inverse_affine(size, degrees, shear, zoom, dx, dy),
                options);
    pixels = scratch.data();
  }
  if (!flip) {
    std::memcpy(out, pixels, square.bytes());
    return;
  }
  for (int y = 0; y < size; ++y) {
    for (int x = size - 1; x >= 0; --x, out += 3) {
      std::memcpy(out, pixels + (static_cast<std::ptrdiff_t>(y) * size + x) * 3, 3);
    }
  }
}

}  // namespace rk
