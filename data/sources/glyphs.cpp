#include "data/sources/glyphs.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <utility>

namespace rk {
namespace {

struct Point {
  double x = 0, y = 0;
};

// Control points of a smooth curve around the origin, about one unit across.
using Stroke = std::vector<Point>;

constexpr std::int64_t kMaxAlphabets = 1 << 20;
constexpr std::int64_t kMaxCharacters = 1 << 20;  // of one alphabet
constexpr std::int64_t kMaxDrawings = 1 << 20;
constexpr std::int64_t kMostPictures = 1 << 24;  // of a split: about 1 GB of items and indices
constexpr int kStrokesOfAlphabet = 9;
constexpr int kCurveSteps =
    8;  // straight pieces a span: below a quarter pixel off the curve at 128

// The keys that are no whole numbers. Fingerprints in checkpoints hold them by these names and in
// this order (drawn_by()).
constexpr std::array kGlyphNumbers = std::to_array<NumberKey<GlyphOptions>>({
    {"variation", &GlyphOptions::variation, 0, 10},
    {"bend", &GlyphOptions::bend, 0, 1},
    {"place", &GlyphOptions::place, 0, 1},
    {"stretch", &GlyphOptions::stretch, 0, 1},
    {"slant", &GlyphOptions::slant, 0, 45},
    {"turn", &GlyphOptions::turn, 0, 180},
    {"warp", &GlyphOptions::warp, 0, 1},
    {"shift", &GlyphOptions::shift, 0, 1},
    {"thickness", &GlyphOptions::thickness, 0.005, 0.2},
});

// The path of a pen, which turns at a slowly changing rate, as a hand does.
Stroke make_stroke(CounterRandom& random) {
  // About a third of the strokes are nearly straight; the others are arcs, hooks, waves and loops.
  const bool straight = random.uniform() < 0.35;
  const auto points = straight ? 2 + random.below(2) : 3 + random.below(3);
  const double wild = random.uniform() < 0.3 ? 1.7 : 0.7;  // some have corners
  double heading = random.uniform(0, 2 * std::numbers::pi);
  double turn = straight ? random.uniform(-0.15, 0.15) : random.uniform(-1.2, 1.2);
  Stroke stroke(static_cast<std::size_t>(points));
  Point at;
  for (Point& p : stroke) {
    p = at;
    at.x += std::cos(heading);
    at.y += std::sin(heading);
    heading += turn;
    turn += (straight ? 0.1 : wild) * random.uniform(-0.8, 0.8);
  }
  Point low = stroke[0], high = stroke[0];
  for (const Point& p : stroke) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  const double scale = 1 / std::max(high.x - low.x, high.y - low.y);
  for (Point& p : stroke) {
    p = {(p.x - (low.x + high.x) / 2) * scale, (p.y - (low.y + high.y) / 2) * scale};
  }
  return stroke;
}

// The strokes of one character, around the origin, about 1.6 units across at most.
std::vector<Stroke> make_character(const GlyphOptions& options, std::int64_t alphabet,
                                   std::int64_t character) {
  CounterRandom style(options.seed, random_stream(RandomUse::kGlyphStyle),
                      static_cast<std::uint64_t>(alphabet));
  std::array<Stroke, kStrokesOfAlphabet> parts;
  for (Stroke& part : parts) part = make_stroke(style);
  const double size_of_parts = style.uniform(0.45, 0.7);

  CounterRandom random(options.seed, random_stream(RandomUse::kGlyphShape),
                       static_cast<std::uint64_t>(alphabet * kMaxCharacters + character));
  std::vector<Stroke> strokes(static_cast<std::size_t>(2 + random.below(3)));
  for (Stroke& stroke : strokes) {
    stroke = parts[static_cast<std::size_t>(random.below(kStrokesOfAlphabet))];
    const double scale = size_of_parts * random.uniform(0.7, 1.4);
    // Places on a coarse grid: hands remember "top left", not coordinates.
    const double x = 0.33 * static_cast<double>(random.below(3) - 1);
    const double y = 0.33 * static_cast<double>(random.below(3) - 1);
    const double mirror = random.uniform() < 0.25 ? -1 : 1;
    for (Point& p : stroke) p = {x + mirror * scale * p.x, y + scale * p.y};
  }
  return strokes;
}

// A smooth displacement of the plane: one sine wave per axis.
struct Warp {
  std::array<double, 2> phase{}, frequency{}, amplitude{};

  Point operator()(Point p) const {
    return {p.x + amplitude[0] * std::sin(frequency[0] * p.y + phase[0]),
            p.y + amplitude[1] * std::sin(frequency[1] * p.x + phase[1])};
  }
};

// The curve through the control points (Catmull-Rom with repeated ends), as short straight
// segments.
std::vector<Point> follow(const Stroke& control) {
  const auto at = [&control](std::ptrdiff_t i) {
    const auto last = static_cast<std::ptrdiff_t>(control.size()) - 1;
    return control[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(i, 0, last))];
  };
  const auto blend = [](double a, double b, double c, double d, double t) {
    return 0.5 *
           (2 * b + t * ((c - a) + t * ((2 * a - 5 * b + 4 * c - d) + t * (3 * (b - c) + d - a))));
  };
  std::vector<Point> curve{control.front()};
  for (std::ptrdiff_t i = 0; i + 1 < static_cast<std::ptrdiff_t>(control.size()); ++i) {
    const Point a = at(i - 1), b = at(i), c = at(i + 1), d = at(i + 2);
    for (int step = 1; step <= kCurveSteps; ++step) {
      const double t = static_cast<double>(step) / kCurveSteps;
      curve.push_back({blend(a.x, b.x, c.x, d.x, t), blend(a.y, b.y, c.y, d.y, t)});
    }
  }
  return curve;
}

// The smallest squared distance from each pixel centre to the middle line of the ink.
class Canvas {
 public:
  Canvas(int size, double radius)
      : size_(size),
        radius_(radius),
        nearest_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size),
                 std::numeric_limits<float>::infinity()) {}

  void line(Point a, Point b) {
    const double reach = radius_ + 1;
    const auto first = [&](double v) {
      return std::max(0, static_cast<int>(std::floor(v - reach)));
    };
    const auto last = [&](double v) {
      return std::min(size_ - 1, static_cast<int>(std::ceil(v + reach)));
    };
    const double dx = b.x - a.x, dy = b.y - a.y;
    const double length2 = std::max(dx * dx + dy * dy, 1e-12);
    for (int y = first(std::min(a.y, b.y)); y <= last(std::max(a.y, b.y)); ++y) {
      for (int x = first(std::min(a.x, b.x)); x <= last(std::max(a.x, b.x)); ++x) {
        const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
        const double t = std::clamp((px * dx + py * dy) / length2, 0.0, 1.0);
        const double ex = px - t * dx, ey = py - t * dy;
        float& nearest = nearest_[static_cast<std::size_t>(y) * static_cast<std::size_t>(size_) +
                                  static_cast<std::size_t>(x)];
        nearest = std::min(nearest, static_cast<float>(ex * ex + ey * ey));
      }
    }
  }

  Image image() const {
    Image image(size_, size_);
    std::uint8_t* out = image.data();
    for (const float squared : nearest_) {
      const double ink =
          std::clamp(0.5 + radius_ - std::sqrt(static_cast<double>(squared)), 0.0, 1.0);
      const auto level = static_cast<std::uint8_t>(std::lround(255 * (1 - ink)));
      out = std::fill_n(out, Image::kChannels, level);
    }
    return image;
  }

 private:
  int size_;
  double radius_;
  std::vector<float> nearest_;
};

// Which drawing an item is: its key.
struct Drawing {
  std::int64_t alphabet, character, number;

  Drawing(std::int64_t of, std::int64_t which, std::int64_t n)
      : alphabet(of), character(which), number(n) {}
  explicit Drawing(std::int64_t key)
      : alphabet(key / kMaxDrawings / kMaxCharacters),
        character(key / kMaxDrawings % kMaxCharacters),
        number(key % kMaxDrawings) {}
  std::int64_t key() const {
    return (alphabet * kMaxCharacters + character) * kMaxDrawings + number;
  }
  std::string class_name() const {
    return fmt::format("alphabet{:02}/character{:02}", alphabet, character);
  }
};

class GlyphSource : public ImageSource {
 public:
  explicit GlyphSource(const GlyphOptions& options) : options_(options) {}
  // Of the item alone: merged classes hold several characters.
  Image load(const DataItem& item, const DataClass&) const override {
    const Drawing drawing(item.key);
    return draw_glyph(options_, drawing.alphabet, drawing.character, drawing.number);
  }
  std::string name(const DataItem& item, const DataClass&) const override {
    const Drawing drawing(item.key);
    return fmt::format("glyphs/{}/{:02}", drawing.class_name(), drawing.number);
  }
  std::string drawn_by() const override {
    std::string text = fmt::format("size={} seed={}", options_.size, options_.seed);
    for (const auto& key : kGlyphNumbers) {
      text += fmt::format(" {}={}", key.name, options_.*key.value);
    }
    return text;
  }

 private:
  GlyphOptions options_;
};

}  // namespace

std::string_view glyphs_help() {
  return "characters drawn by a generator: classes=100 of alphabets=5 to train on, "
         "test_classes=100 of test_alphabets=5 to test on, images=20 of each, size=64 pixels, by "
         "seed=0. Drawings of a character differ by variation=1 (0 to 10) times bend=0.045, "
         "place=0.05, stretch=0.16, warp=0.04, shift=0.08 (0 to 1: shares of the character or the "
         "picture), slant=14 (to 45 degrees), turn=10 (to 180); thickness=0.045 (0.005 to 0.2: of "
         "the pen, share of the picture)";
}

std::vector<std::string> glyphs_keys() {
  std::vector<std::string> keys{"classes", "test_classes", "alphabets", "test_alphabets",
                                "images",  "size",         "seed"};
  for (const auto& key : kGlyphNumbers) keys.emplace_back(key.name);
  return keys;
}

GlyphOptions glyph_options(const DataSpec& spec) {
  GlyphOptions o;
  o.classes = spec.integer("classes", o.classes, 1, kMaxCharacters);
  o.test_classes = spec.integer("test_classes", o.test_classes, 1, kMaxCharacters);
  // If there are fewer classes than default alphabets, each class gets an alphabet of its own.
  o.alphabets = spec.integer("alphabets", std::min(o.alphabets, o.classes), 1, o.classes);
  o.test_alphabets =
      spec.integer("test_alphabets", std::min(o.test_alphabets, o.test_classes), 1, o.test_classes);
  o.images = spec.integer("images", o.images, 1, kMaxDrawings);
  for (const auto& [key, count] :
       {std::pair{"classes", o.classes}, std::pair{"test_classes", o.test_classes}}) {
    if (count * o.images <= kMostPictures) continue;
    fail<UsageError>(
        "glyphs: {}={} of images={} are {} pictures, more than the limit of {}; lower one", key,
        count, o.images, count * o.images, kMostPictures);
  }
  o.size = static_cast<int>(spec.integer("size", o.size, 8, 1024));
  o.seed = static_cast<std::uint64_t>(
      spec.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  for (const auto& key : kGlyphNumbers) {
    o.*key.value = spec.number(key.name, o.*key.value, key.low, key.high);
  }
  return o;
}

std::vector<Split> glyphs_splits(const DataSpec&) { return {Split::kTrain, Split::kTest}; }

Dataset read_glyphs(const DataSpec& spec, Split split) {
  const GlyphOptions options = glyph_options(spec);
  const bool test = split == Split::kTest;
  const std::int64_t classes = test ? options.test_classes : options.classes;
  const std::int64_t alphabets = test ? options.test_alphabets : options.alphabets;
  std::vector<DataItem> items;
  std::vector<DataClass> table;
  std::vector<std::string> categories;
  items.reserve(static_cast<std::size_t>(classes * options.images));
  for (std::int64_t a = 0; a < alphabets; ++a) {
    const std::int64_t alphabet = 2 * a + (test ? 1 : 0);
    categories.push_back(fmt::format("alphabet{:02}", alphabet));
    const std::int64_t characters = classes * (a + 1) / alphabets - classes * a / alphabets;
    for (std::int64_t c = 0; c < characters; ++c) {
      for (std::int64_t i = 0; i < options.images; ++i) {
        items.push_back(
            {"", Drawing(alphabet, c, i).key(), static_cast<std::int64_t>(table.size())});
      }
      table.push_back({Drawing(alphabet, c, 0).class_name(), a});
    }
  }
  return Dataset("glyphs", std::move(items), std::move(table), std::move(categories),
                 std::make_shared<GlyphSource>(options));
}

Image draw_glyph(const GlyphOptions& options, std::int64_t alphabet, std::int64_t character,
                 std::int64_t drawing) {
  expect(alphabet >= 0 && alphabet < 2 * kMaxAlphabets && character >= 0 &&
             character < kMaxCharacters && drawing >= 0 && drawing < kMaxDrawings,
         "[glyphs] expected alphabet, character and drawing in range, got {}, {}, {}", alphabet,
         character, drawing);
  std::vector<Stroke> strokes = make_character(options, alphabet, character);
  // 2^21 alphabets x 2^20 characters x 2^20 drawings fit 64 bits.
  CounterRandom random(
      options.seed, random_stream(RandomUse::kGlyphDrawing),
      static_cast<std::uint64_t>((alphabet * kMaxCharacters + character) * kMaxDrawings + drawing));
  const double v = options.variation;

  // The writer: one slant, turn, scale and warp for the whole character.
  const double degree = std::numbers::pi / 180;
  const double slant =
      std::tan(std::clamp(v * options.slant * random.normal(), -60.0, 60.0) * degree);
  const double turn = v * options.turn * random.normal() * degree;
  const double scale_x = std::exp(v * options.stretch * random.normal());
  const double scale_y = std::exp(v * options.stretch * random.normal());
  const Point shift{v * options.shift * random.normal(), v * options.shift * random.normal()};
  const double radius = options.size * options.thickness / 2 * std::pow(1.5, random.uniform(-1, 1));
  Warp warp;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    warp.phase[axis] = random.uniform(0, 2 * std::numbers::pi);
    warp.frequency[axis] = random.uniform(2, 7);
    warp.amplitude[axis] = v * options.warp * random.normal();
  }

  // The hand: each stroke by itself.
  for (Stroke& stroke : strokes) {
    Point centre;
    for (const Point& p : stroke) {
      centre.x += p.x / static_cast<double>(stroke.size());
      centre.y += p.y / static_cast<double>(stroke.size());
    }
    const double scale = std::exp(v * options.stretch * random.normal());
    const Point move{v * options.place * random.normal(), v * options.place * random.normal()};
    for (Point& p : stroke) {
      p.x = centre.x + scale * (p.x - centre.x) + move.x + v * options.bend * random.normal();
      p.y = centre.y + scale * (p.y - centre.y) + move.y + v * options.bend * random.normal();
    }
  }

  // The ink: curves are warped and turned point by point, then centred in the picture.
  std::vector<std::vector<Point>> curves;
  Point low{1e9, 1e9}, high{-1e9, -1e9};
  for (const Stroke& stroke : strokes) {
    curves.push_back(follow(stroke));
    for (Point& p : curves.back()) {
      p = warp(p);
      p.x = scale_x * p.x - slant * scale_y * p.y;
      p.y = scale_y * p.y;
      p = {std::cos(turn) * p.x - std::sin(turn) * p.y,
           std::sin(turn) * p.x + std::cos(turn) * p.y};
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  }
  const Point middle{(low.x + high.x) / 2, (low.y + high.y) / 2};
  // Shrunk only if it would leave the picture, so sizes differ between characters and drawings. The
  // middle line keeps `radius` + 1 pixel from the edge, so the outermost pixels stay white.
  const double extent = std::max({high.x - low.x, high.y - low.y, 1e-6});
  const double room = std::max(0.0, 0.5 * options.size - radius - 1);
  const double zoom =
      std::min(0.62 * options.size, 2 * std::min(0.42 * options.size, room) / extent);
  const auto place = [&](double at, double centre, double half_extent, double moved) {
    const double free = std::max(0.0, room - zoom * half_extent);
    return zoom * (at - centre) + 0.5 * options.size +
           std::clamp(moved * options.size, -free, free);
  };
  Canvas canvas(options.size, radius);
  for (std::vector<Point>& curve : curves) {
    for (Point& p : curve) {
      p = {place(p.x, middle.x, (high.x - low.x) / 2, shift.x),
           place(p.y, middle.y, (high.y - low.y) / 2, shift.y)};
    }
    for (std::size_t i = 1; i < curve.size(); ++i) canvas.line(curve[i - 1], curve[i]);
  }
  return canvas.image();
}

}  // namespace rk
