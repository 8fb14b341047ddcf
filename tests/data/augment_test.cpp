#include "data/images/augment.h"

#include "data/images/resize.h"
#include "data/images/transform.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/data/picture_folder.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace rk {
namespace {

std::vector<std::uint8_t> run(const Image& image, const AugmentOptions& options,
                              CounterRandom random = augment_random(0, 0, 0, 0)) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(options.size * options.size * 3));
  std::vector<std::uint8_t> scratch;
  augment(image, options, random, out.data(), scratch);
  return out;
}

std::vector<std::uint8_t> pixels_of(const Image& image) {
  return {image.data(), image.data() + image.bytes()};
}

TEST(Augment, NoneIsEvaluationsTransform) {
  for (const auto& [width, height] : {std::pair{50, 37}, {20, 90}, {33, 33}}) {
    const Image image = noise_image(width, height, 1);
    EXPECT_EQ(run(image, center_crop(24, 28)), pixels_of(apply({28, 0, 0, 24}, image)));
    EXPECT_EQ(run(image, center_crop(24, 28, true)), pixels_of(apply({0, 28, 28, 24}, image)));
  }
}

// Random windows of a stretched picture are those of the square that it becomes.
TEST(Augment, RandomCropsOfStretchedPicturesAreOfTheSquare) {
  const Image image = noise_image(50, 20, 1), square = resize(image, 28, 28);
  AugmentOptions stretched = center_crop(24, 28, true);
  stretched.crop = Crop::kRandom;
  AugmentOptions plain = stretched;
  plain.stretch = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto draws = augment_random(seed, 0, 0, 0);
    EXPECT_EQ(run(image, stretched, draws), run(square, plain, draws));
  }
}

TEST(Augment, EachKeyGivesItsOwnDraws) {
  AugmentOptions options = center_crop(16, 20);
  options.crop = Crop::kRandomResized;
  const Image image = noise_image(60, 50, 1);
  const auto base = run(image, options, augment_random(1, 2, 3, 4));
  EXPECT_EQ(base, run(image, options, augment_random(1, 2, 3, 4)));
  EXPECT_NE(base, run(image, options, augment_random(0, 2, 3, 4)));
  EXPECT_NE(base, run(image, options, augment_random(1, 3, 3, 4)));
  EXPECT_NE(base, run(image, options, augment_random(1, 2, 4, 4)));
  EXPECT_NE(base, run(image, options, augment_random(1, 2, 3, 5)));
}

TEST(Augment, FlipMirrorsRows) {
  AugmentOptions options = center_crop(16, 16);
  const Image image = noise_image(16, 16, 1);
  options.flip = 1;
  const auto flipped = run(image, options);
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 16; ++x) {
      EXPECT_EQ(std::memcmp(&flipped[static_cast<std::size_t>((y * 16 + x) * 3)],
                            image.pixel(15 - x, y), 3),
                0);
    }
  }
}

TEST(Augment, FlipComesHalfTheTime) {
  AugmentOptions options = center_crop(8, 8);
  options.flip = 0.5;
  const Image image = noise_image(8, 8, 1);
  const auto straight = pixels_of(image);
  int flips = 0;
  for (int i = 0; i < 1000; ++i)
    flips += run(image, options, augment_random(0, 0, i, 0)) != straight;
  EXPECT_NEAR(flips, 500, 64);  // four standard deviations of a fair coin
}

TEST(Augment, RandomCropIsAWindowOfTheResizedPicture) {
  AugmentOptions options = center_crop(16, 20);
  options.crop = Crop::kRandom;
  const Image image = noise_image(60, 45, 1);
  const ImageSize size = resized_size(60, 45, {20, 0, 0, 0});
  const Image resized = resize(image, static_cast<int>(size.width), static_cast<int>(size.height));
  std::vector<std::pair<int, int>> seen;
  for (int i = 0; i < 200; ++i) {
    const auto out = run(image, options, augment_random(0, 0, i, 0));
    bool found = false;
    for (int y = 0; y + 16 <= resized.height() && !found; ++y) {
      for (int x = 0; x + 16 <= resized.width() && !found; ++x) {
        found = true;
        for (int row = 0; row < 16 && found; ++row) {
          found = std::memcmp(out.data() + 48 * row, resized.pixel(x, y + row), 48) == 0;
        }
        if (found) seen.emplace_back(x, y);
      }
    }
    ASSERT_TRUE(found) << i;
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  // All (26 - 16 + 1) x (20 - 16 + 1) windows are equally likely: 200 draws see most of the 55.
  EXPECT_GE(seen.size(), 45U);
  EXPECT_EQ(seen.front().first, 0);
  EXPECT_EQ(seen.back().first, resized.width() - 16);
}

TEST(RandomResizedWindow, StaysInsideAndKeepsAreaAndRatio) {
  AugmentOptions options;
  options.area_min = 0.2;
  options.area_max = 0.5;
  double area_sum = 0, log_ratio_sum = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    CounterRandom random(3, 0, static_cast<std::uint64_t>(i));
    const Box box = random_resized_window(400, 400, options, random);
    ASSERT_GE(box.left, 0);
    ASSERT_GE(box.top, 0);
    ASSERT_LE(box.left + box.width, 400);
    ASSERT_LE(box.top + box.height, 400);
    const double area = box.width * box.height / 160000.0;
    const double ratio = box.width / static_cast<double>(box.height);
    // Both sides are rounded to pixels: each is off by at most 0.5 in 154, the shortest side.
    ASSERT_GE(area, 0.2 * 0.993);
    ASSERT_LE(area, 0.5 * 1.007);
    ASSERT_GE(ratio, 0.75 * 0.993);
    ASSERT_LE(ratio, 4.0 / 3 * 1.007);
    area_sum += area;
    log_ratio_sum += std::log(ratio);
  }
  EXPECT_NEAR(area_sum / kDraws, 0.35, 4 * 0.3 / std::sqrt(12.0 * kDraws));  // four standard errors
  EXPECT_NEAR(log_ratio_sum / kDraws, 0, 4 * 0.5754 / std::sqrt(12.0 * kDraws));
}

// A window of 8 x 8 has 13 places across and 7 down.
TEST(RandomResizedWindow, EveryPlaceIsAsLikely) {
  AugmentOptions options;
  options.area_min = options.area_max = 0.25;
  options.ratio_min = options.ratio_max = 1;
  constexpr int kDraws = 9100;
  std::vector<int> across(13), down(7);
  for (int i = 0; i < kDraws; ++i) {
    CounterRandom random(5, 0, static_cast<std::uint64_t>(i));
    const Box box = random_resized_window(20, 14, options, random);
    ASSERT_EQ(std::tuple(box.width, box.height), std::tuple(8, 8));
    ++across.at(static_cast<std::size_t>(box.left));
    ++down.at(static_cast<std::size_t>(box.top));
  }
  // Within four standard deviations.
  for (const int times : across) EXPECT_NEAR(times, 700, 4 * 25.5);
  for (const int times : down) EXPECT_NEAR(times, 1300, 4 * 33.4);
}

// Ten windows are drawn before the centre is taken. A square of a share of the area uniform in
// [0.28, 0.78] fits into 300 x 100 pixels where its side is at most 100 when rounded: one in nine.
TEST(RandomResizedWindow, TriesTenTimes) {
  AugmentOptions options;
  options.area_min = 0.28;
  options.area_max = 0.78;
  options.ratio_min = options.ratio_max = 1;
  constexpr int kDraws = 20000;
  int centred = 0;
  for (int i = 0; i < kDraws; ++i) {
    CounterRandom random(11, 0, static_cast<std::uint64_t>(i));
    const Box box = random_resized_window(300, 100, options, random);
    centred += box.width == 100 && box.left == 100 ? 1 : 0;
  }
  const double fits = (100.5 * 100.5 / 30000 - 0.28) / 0.5;
  // Of those of 100 pixels that fit, 1 of 201 stands in the middle.
  const double whole = (100.5 * 100.5 - 99.5 * 99.5) / 30000 / 0.5 / fits / 201;
  const double none = std::pow(1 - fits, 10);
  const double share = none + (1 - none) * whole;
  EXPECT_NEAR(centred, share * kDraws, 5 * std::sqrt(share * kDraws));
}

TEST(RandomResizedWindow, FallsBackToTheCentreOfNarrowPictures) {
  const AugmentOptions options;
  CounterRandom random(0, 0, 0);
  AugmentOptions whole = options;
  whole.area_min = whole.area_max =
      1;  // never fits a picture of ratio 10, so the fallback is taken
  Box box = random_resized_window(1000, 100, whole, random);
  EXPECT_EQ(std::tuple(box.left, box.top, box.width, box.height), std::tuple(433, 0, 133, 100));
  box = random_resized_window(100, 1000, whole, random);
  EXPECT_EQ(std::tuple(box.left, box.top, box.width, box.height), std::tuple(0, 433, 100, 133));
  box = random_resized_window(1, 10000, options, random);
  EXPECT_EQ(std::tuple(box.left, box.width, box.height), std::tuple(0, 1, 1));
  box = random_resized_window(1, 1, options, random);
  EXPECT_EQ(std::tuple(box.left, box.top, box.width, box.height), std::tuple(0, 0, 1, 1));
  // Halves are rounded to even, as Python's round() does: 5 / 2 and 5 * 0.5 become 2.
  whole.ratio_min = 2;
  whole.ratio_max = 3;
  box = random_resized_window(5, 100, whole, random);
  EXPECT_EQ(std::tuple(box.left, box.top, box.width, box.height), std::tuple(0, 49, 5, 2));
  whole.ratio_min = 0.4;
  whole.ratio_max = 0.5;
  box = random_resized_window(100, 5, whole, random);
  EXPECT_EQ(std::tuple(box.left, box.top, box.width, box.height), std::tuple(49, 0, 2, 5));
}

TEST(Affine, IdentityKeepsEveryByte) {
  const Image image = noise_image(17, 17, 1);
  std::vector<std::uint8_t> out(image.bytes());
  warp_affine(image.data(), out.data(), 17, inverse_affine(17, 0, 0, 1, 0, 0), {});
  EXPECT_EQ(out, pixels_of(image));
}

TEST(Affine, QuarterTurnsMovePixelsExactly) {
  // With even sides the centre is a pixel's corner, with odd ones a pixel's middle. Every source
  // point is a pixel's middle but for rounding, so interpolation must return that pixel's byte.
  for (const int size : {8, 9}) {
    const Image image = noise_image(size, size, 1);
    std::vector<std::uint8_t> out(image.bytes());
    warp_affine(image.data(), out.data(), size, inverse_affine(size, 90, 0, 1, 0, 0), {});
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        // torchvision turns clockwise: the top left corner comes from the bottom left one.
        EXPECT_EQ(std::memcmp(&out[static_cast<std::size_t>((y * size + x) * 3)],
                              image.pixel(y, size - 1 - x), 3),
                  0);
      }
    }
  }
}

TEST(Affine, WholePixelShiftsAndTheirFill) {
  const int size = 10;
  const Image image = noise_image(size, size, 1);
  std::vector<std::uint8_t> out(image.bytes());
  AugmentOptions white;
  white.fill_border = false;
  white.fill.fill(255);
  for (const bool border : {true, false}) {
    warp_affine(image.data(), out.data(), size, inverse_affine(size, 0, 0, 1, 3, -2),
                border ? AugmentOptions{} : white);
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        const int sx = x - 3, sy = y + 2;  // the picture moved right by 3 and up by 2
        const bool inside = sx >= 0 && sy < size;
        const std::uint8_t expected =
            inside || border ? image.pixel(std::max(sx, 0), std::min(sy, size - 1))[1] : 255;
        EXPECT_EQ(out[static_cast<std::size_t>((y * size + x) * 3 + 1)], expected) << x << "," << y;
      }
    }
  }
}

TEST(Affine, HalfPixelShiftAverages) {
  const int size = 4;
  Image image(size, size);
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) std::memset(image.pixel(x, y), 10 * x, 3);
  }
  std::vector<std::uint8_t> out(image.bytes());
  warp_affine(image.data(), out.data(), size, inverse_affine(size, 0, 0, 1, 0.5, 0), {});
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[3], 5);
  EXPECT_EQ(out[9], 25);
}

// Every byte is the nearest to the definition in double: the four pixels around the place, those
// outside being the fill or the nearest of the picture. Places are drawn inside and far outside.
TEST(Affine, ResamplesAsDefinedForAnyMap) {
  const std::uint64_t seed = random_seed();
  CounterRandom random(seed, 0, 0);
  for (int round = 0; round < 400; ++round) {
    const int size = 1 + static_cast<int>(random.below(24));
    const Image image = noise_image(size, size, static_cast<std::uint64_t>(round));
    AugmentOptions options;
    options.fill_border = random.below(2) == 0;
    for (std::uint8_t& each : options.fill) each = static_cast<std::uint8_t>(random.below(256));
    std::array<double, 6> map;
    for (double& each : map) each = random.uniform(-2, 2);
    const double reach = random.below(8) == 0 ? 1e12 : size;
    for (const std::size_t shift : {std::size_t{2}, std::size_t{5}})
      map[shift] = random.uniform(-reach, reach);
    std::vector<std::uint8_t> out(image.bytes());
    warp_affine(image.data(), out.data(), size, map, options);
    const auto tap = [&](double x, double y, std::size_t c) {
      const bool outside = x < 0 || y < 0 || x > size - 1 || y > size - 1;
      if (outside && !options.fill_border) return static_cast<double>(options.fill[c]);
      const auto nearest = [&](double place) {
        return static_cast<int>(std::clamp(place, 0.0, size - 1.0));
      };
      return static_cast<double>(image.pixel(nearest(x), nearest(y))[c]);
    };
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto pixel = static_cast<int>(i / 3);
      const int column = pixel % size, row = pixel / size;
      const double px = column + 0.5, py = row + 0.5;
      const double x = map[0] * px + map[1] * py + map[2] - 0.5;
      const double y = map[3] * px + map[4] * py + map[5] - 0.5;
      const double left = std::floor(x), top = std::floor(y);
      double expected = 0;
      for (const double dx : {0.0, 1.0}) {
        for (const double dy : {0.0, 1.0}) {
          const double weight =
              (dx == 0 ? 1 - (x - left) : x - left) * (dy == 0 ? 1 - (y - top) : y - top);
          expected += weight * tap(left + dx, top + dy, i % 3);
        }
      }
      // float's rounding of values up to 255, three times over
      ASSERT_NEAR(out[i], expected, 0.5 + 1e-4) << "round " << round << " of seed " << seed;
    }
  }
}

// The matrix against torchvision's definition: M = T(centre + translate) R(a) Shear S T(-centre),
// multiplied out here point by point.
TEST(Affine, InverseUndoesTheForwardMap) {
  const int size = 64;
  const double degrees = 20, shear = 10, zoom = 1.3, tx = 4, ty = -7;
  const auto m = inverse_affine(size, degrees, shear, zoom, tx, ty);
  const double a = degrees * std::acos(-1.0) / 180, s = std::tan(shear * std::acos(-1.0) / 180);
  for (const auto& [px, py] : {std::pair{0.0, 0.0}, {64.0, 0.0}, {10.0, 50.0}}) {
    const double x = px - 32, y = py - 32;
    const double sheared = x - s * y;
    const double ox = zoom * (std::cos(a) * sheared - std::sin(a) * y) + 32 + tx;
    const double oy = zoom * (std::sin(a) * sheared + std::cos(a) * y) + 32 + ty;
    EXPECT_NEAR(m[0] * ox + m[1] * oy + m[2], px, 1e-12 * 64);  // rounding of a dozen operations
    EXPECT_NEAR(m[3] * ox + m[4] * oy + m[5], py, 1e-12 * 64);
  }
}

// What augment() drew, recovered from the centroids of three spots.
struct Drawn {
  double degrees = 0, shear = 0, zoom = 0, x = 0, y = 0;  // x, y: share of the side
};
constexpr int kSpotSide = 97;
constexpr double kSpotMiddle = 0.5 * (kSpotSide - 1), kSpotArm = 16;

// A cone of light in each channel: blue in the centre, red to its right and green below it.
Image three_spots() {
  constexpr double kRadius = 6;
  Image image(kSpotSide, kSpotSide);
  std::memset(image.data(), 0, image.bytes());
  const std::array<std::array<double, 2>, 3> spots{{{kSpotMiddle + kSpotArm, kSpotMiddle},
                                                    {kSpotMiddle, kSpotMiddle + kSpotArm},
                                                    {kSpotMiddle, kSpotMiddle}}};
  for (int y = 0; y < kSpotSide; ++y) {
    for (int x = 0; x < kSpotSide; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const double light = 1 - std::hypot(x - spots[c][0], y - spots[c][1]) / kRadius;
        image.pixel(x, y)[c] = static_cast<std::uint8_t>(255 * std::max(light, 0.0));
      }
    }
  }
  return image;
}

Drawn drawn(const std::vector<std::uint8_t>& out) {
  std::array<std::array<double, 3>, 3> moments{};  // of each channel: sum, sum x, sum y
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int>(i / 3);
    const int x = at % kSpotSide, y = at / kSpotSide;
    moments[i % 3][0] += out[i];
    moments[i % 3][1] += out[i] * x;
    moments[i % 3][2] += out[i] * y;
  }
  const auto centroid = [&](std::size_t c, std::size_t axis) {
    return moments[c][axis] / moments[c][0];
  };
  const double red_x = centroid(0, 1) - centroid(2, 1), red_y = centroid(0, 2) - centroid(2, 2);
  const double green_x = centroid(1, 1) - centroid(2, 1), green_y = centroid(1, 2) - centroid(2, 2);
  // The map turns the red arm and scales it, and moves the green one against it by the shear.
  const double length = std::hypot(red_x, red_y);
  const double along = (green_x * red_x + green_y * red_y) / length;
  const double across = (green_y * red_x - green_x * red_y) / length;
  const double in_degrees = 180 / std::acos(-1.0);
  return {std::atan2(red_y, red_x) * in_degrees, std::atan2(-along, across) * in_degrees,
          length / kSpotArm, (centroid(2, 1) - kSpotMiddle) / kSpotSide,
          (centroid(2, 2) - kSpotMiddle) / kSpotSide};
}

struct DrawnRange {
  const char* what;
  double Drawn::*value;
  const char* flag;
  double low, high, rest;
};
const std::vector<DrawnRange>& drawn_ranges() {
  static const std::vector<DrawnRange> all{
      {"rotation", &Drawn::degrees, "rotation=20", -20, 20, 0},
      {"shear", &Drawn::shear, "shear=15", -15, 15, 0},
      {"zoom", &Drawn::zoom, "zoom_min=0.8,zoom_max=1.25", 0.8, 1.25, 1},
      {"horizontal translation", &Drawn::x, "translate=0.1", -0.1, 0.1, 0},
      {"vertical translation", &Drawn::y, "translate=0.1", -0.1, 0.1, 0}};
  return all;
}

std::vector<Drawn> draw_many(const std::string& flag) {
  const Image image = three_spots();
  const AugmentOptions options = parse_augment(flag, center_crop(kSpotSide, kSpotSide));
  std::vector<Drawn> out;
  for (int i = 0; i < 400; ++i)
    out.push_back(drawn(run(image, options, augment_random(0, 0, i, 0))));
  return out;
}

TEST(Affine, EachKeyDrawsItsWholeRangeAndNothingElse) {
  for (const DrawnRange& key : drawn_ranges()) {
    SCOPED_TRACE(key.what);
    const std::vector<Drawn> draws = draw_many(key.flag);
    for (const DrawnRange& of : drawn_ranges()) {
      double least = 1e9, most = -1e9, sum = 0;
      for (const Drawn& one : draws) {
        const double value = one.*(of.value);
        least = std::min(least, value);
        most = std::max(most, value);
        sum += value;
      }
      // Resampling into bytes moves a centroid by a few hundredths of a pixel. 400 draws miss an
      // end by 1/400 of the range on average; four standard errors of their mean are 6 % of it.
      const double range = of.high - of.low;
      const bool is_drawn = std::string(key.flag) == of.flag;
      EXPECT_NEAR(least, is_drawn ? of.low : of.rest, 0.02 * range) << of.what;
      EXPECT_NEAR(most, is_drawn ? of.high : of.rest, 0.02 * range) << of.what;
      if (is_drawn) {
        EXPECT_NEAR(sum / 400, (of.low + of.high) / 2, 0.06 * range) << of.what;
      }
    }
  }
}

TEST(Affine, DrawsAreIndependent) {
  const std::vector<Drawn> draws =
      draw_many("rotation=20,shear=15,zoom_min=0.8,zoom_max=1.25,translate=0.1");
  const auto correlation = [&](double Drawn::*a, double Drawn::*b) {
    double sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
    for (const Drawn& one : draws) {
      sum_a += one.*a / 400;
      sum_b += one.*b / 400;
    }
    for (const Drawn& one : draws) {
      aa += (one.*a - sum_a) * (one.*a - sum_a);
      bb += (one.*b - sum_b) * (one.*b - sum_b);
      ab += (one.*a - sum_a) * (one.*b - sum_b);
    }
    return ab / std::sqrt(aa * bb);
  };
  for (const DrawnRange& a : drawn_ranges()) {
    for (const DrawnRange& b : drawn_ranges()) {
      if (&a == &b) continue;
      // Four standard errors of 400 independent pairs.
      EXPECT_NEAR(correlation(a.value, b.value), 0, 0.2) << a.what << " and " << b.what;
    }
  }
}

TEST(Affine, ProbabilityZeroAppliesNone) {
  AugmentOptions options = center_crop(16, 16);
  options.rotation = 45;
  const Image image = noise_image(16, 16, 1);
  EXPECT_NE(run(image, options), pixels_of(image));
  options.affine = 0;
  EXPECT_EQ(run(image, options), pixels_of(image));
}

TEST(AugmentFlag, ReadsAndWritesEveryValue) {
  const AugmentOptions base = center_crop(64, 64);
  const AugmentOptions options =
      parse_augment("crop=resized,area_min=0.2,flip=0.5,rotation=10,zoom_min=0.9,fill=white", base);
  EXPECT_EQ(options.crop, Crop::kRandomResized);
  EXPECT_EQ(options.size, 64);
  EXPECT_EQ(options.area_min, 0.2);
  EXPECT_EQ(options.rotation, 10);
  EXPECT_FALSE(options.fill_border);
  EXPECT_EQ(options.fill[2], 255);
  EXPECT_EQ(parse_augment("fill=black", options).fill, (std::array<std::uint8_t, 3>{0, 0, 0}));
  EXPECT_EQ(parse_augment("fill=7", options).fill, (std::array<std::uint8_t, 3>{7, 7, 7}));
  const std::string text = augment_text(options);
  EXPECT_EQ(augment_text(parse_augment(text, base)), text);
  EXPECT_EQ(augment_text(parse_augment("none", options)), text);  // names nothing, changes nothing
}

TEST(AugmentFlag, WrongValuesAreUsageErrors) {
  const auto error = [](const std::string& text) {
    return message_of<UsageError>([&] { parse_augment(text, center_crop(64, 32)); });
  };
  EXPECT_TRUE(holds(error("rotatoin=3"), "no option 'rotatoin'; did you mean rotation?"));
  EXPECT_TRUE(holds(error("crop=centre"), "did you mean center?"));
  EXPECT_TRUE(holds(error("flip=2"), "from 0 to 1"));
  EXPECT_TRUE(holds(error("fill=256"), "from 0 to 255"));
  EXPECT_TRUE(holds(error("fill=gray"), "no fill 'gray'; use border, white, black or a level"));
  EXPECT_TRUE(holds(error("fill=-1"), "no fill '-1'"));
  EXPECT_TRUE(holds(error("area_min=0.9,area_max=0.1"), "area_min=0.9 is above area_max=0.1"));
  EXPECT_TRUE(holds(error("zoom_min=2"), "zoom_min=2 is above zoom_max=1; give both"));
  EXPECT_TRUE(holds(error("ratio_max=0.1"), "is above ratio_max=0.1"));
  EXPECT_TRUE(holds(error("crop=random"), "crop=random of 64 pixels from pictures resized to 32"));
}

}  // namespace
}  // namespace rk
