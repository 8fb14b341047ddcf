#include "data/sources/glyphs.h"

#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "tests/support/messages.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>
#include <tuple>

namespace rk {
namespace {

bool same_pixels(const Image& a, const Image& b) {
  return a.width() == b.width() && a.height() == b.height() &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(Glyphs, ADrawingIsAFunctionOfItsNumbers) {
  const GlyphOptions options;
  const Image image = draw_glyph(options, 3, 5, 7);
  EXPECT_EQ(image.width(), 64);
  EXPECT_EQ(image.height(), 64);
  EXPECT_TRUE(same_pixels(image, draw_glyph(options, 3, 5, 7)));
  EXPECT_FALSE(same_pixels(image, draw_glyph(options, 3, 5, 8)));
  EXPECT_FALSE(same_pixels(image, draw_glyph(options, 3, 6, 7)));
  EXPECT_FALSE(same_pixels(image, draw_glyph(options, 4, 5, 7)));
  GlyphOptions other = options;
  other.seed = 1;
  EXPECT_FALSE(same_pixels(image, draw_glyph(other, 3, 5, 7)));
}

// Rows of pixels as hexadecimal digits of ink, blank where there is none.
std::vector<std::string> ink_of(const Image& image) {
  std::vector<std::string> rows;
  for (int y = 0; y < image.height(); ++y) {
    std::string& row = rows.emplace_back();
    for (int x = 0; x < image.width(); ++x) {
      row += " 123456789abcdef"[(255 - image.pixel(x, y)[0]) / 16];
    }
  }
  return rows;
}

// Runs are compared with earlier ones, so the generator must go on drawing what it drew. A digit
// may be one off: mathematical libraries round differently.
TEST(Glyphs, ADrawingStaysWhatItWas) {
  const std::vector<std::string> expected = {
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |             3      |                    ",
      "                    | 1                  |           5db      |     6cd6           ",
      "        63          | 4b81               |          af61      |   4cddfea1         ",
      "       4a           |   3a91             |        4dcfffd7    |   df9534cec4       ",
      "       9d    9      |     2a81           |       7fdcba 5dc2  |  8b1     aea       ",
      "       ab    74     |       3b7          |      ae75568   9d1 |  8b       9f1  2   ",
      "       c73   28     |       775c4        |     5d2 2f92    c5 |  2f4       ca5cc   ",
      "       b19   94     |     1c438a7a1      |     7a   2af935cc  |   7d1     8fdf7    ",
      "       a 957c36     |     c1   1b243     |     6b     3aed7   |    ab     8f96     ",
      "       a  53 37     |     2   17ab67c5   |     4e             |     cb1 1ccf8      ",
      "       c     37     |        9a4122313   |      e5  684       |      ae9bcfb6      ",
      "       a     36     |            c879a   |      6fedc9f8      |       59d62        ",
      "       55    45     |            5a1 3b  |        8e6 3d8     |        e5          ",
      "        b    73     |             2b4 49 |         8f519b     |       6d           ",
      "        4b425c      |                  6 |          6ffb2     |       97           ",
      "          675       |                    |            2       |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |      5             |                    ",
      "    4               |                    |     2f2 2e         |                    ",
      "    d 1             |                    |      e5 6e         |                    ",
      "    da9             |                    |     9eb5c8         |       15763        ",
      "    b49             |             b2     |   2ddc9ff3         |     5bb9858cb4     ",
      "    a 877a          |    46       b3     |   db a94fe6        |  16bb73149b2       ",
      "    84 441          |     921a1  568     |   6  7d4f8fb       | 8b6       2b7    4 ",
      "   286              |     96 7c3 c b     |      2f3e626       |             2  6c8 ",
      "   84               |     371a 984 63    |       ba7e1        |             39b5   ",
      "                    |      9b95778 18    |       4f3ca        |          17c83     ",
      "                    |        143 4a b    |        ba3f5       |         3b5        ",
      "                    |             21     |        36 4        |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
      "                    |                    |                    |                    ",
  };
  GlyphOptions options;
  options.size = 20;
  std::vector<std::string> got(40);
  for (std::int64_t i = 0; i < 8; ++i) {
    const std::vector<std::string> rows =
        ink_of(draw_glyph(options, i / 2, i % 3, i % 2 == 0 ? i : 100 * i));
    for (std::size_t y = 0; y < 20; ++y) {
      got[static_cast<std::size_t>(i / 4) * 20 + y] += (i % 4 > 0 ? "|" : "") + rows[y];
    }
  }
  const auto digit = [](char c) {
    return c == ' ' ? 0 : std::stoi(std::string(1, c), nullptr, 16);
  };
  for (std::size_t y = 0; y < got.size(); ++y) {
    ASSERT_EQ(got[y].size(), expected[y].size());
    for (std::size_t x = 0; x < got[y].size(); ++x) {
      if (got[y][x] == expected[y][x]) continue;
      ASSERT_TRUE(got[y][x] != '|' && std::abs(digit(got[y][x]) - digit(expected[y][x])) <= 1)
          << fmt::format("{}", fmt::join(got, "\n"));
    }
  }
}

auto all(const GlyphOptions& o) {
  return std::tuple(o.classes, o.test_classes, o.alphabets, o.test_alphabets, o.images, o.size,
                    o.seed, o.variation, o.bend, o.place, o.stretch, o.slant, o.turn, o.warp,
                    o.shift, o.thickness);
}

TEST(Glyphs, EveryKeySetsItsOption) {
  EXPECT_EQ(all(glyph_options(read_data_spec("glyphs"))), all(GlyphOptions()));
  EXPECT_EQ(all(glyph_options(read_data_spec(
                "glyphs:classes=11,test_classes=12,alphabets=3,test_alphabets=4,images=5,size=61,"
                "seed=7,variation=0.8,bend=0.09,place=0.11,stretch=0.12,slant=13,turn=15,warp=0.16,"
                "shift=0.17,thickness=0.18"))),
            std::tuple(11, 12, 3, 4, 5, 61, 7U, 0.8, 0.09, 0.11, 0.12, 13, 15, 0.16, 0.17, 0.18));
}

TEST(Glyphs, TheHelpHasEveryKeyWithItsDefault) {
  std::istringstream words{std::string(glyphs_help())};
  std::string text = "glyphs:";
  for (std::string word; words >> word;) {
    if (word.find('=') == std::string::npos) continue;
    if (text.back() != ':') text += ',';
    text += word.substr(0, word.find_last_of("0123456789") + 1);  // without "," "." ";"
  }
  const DataSpec spec = read_data_spec(text);
  EXPECT_EQ(spec.options.size(), glyphs_keys().size()) << text;
  EXPECT_EQ(all(glyph_options(spec)), all(GlyphOptions())) << text;
}

TEST(Glyphs, FewerClassesThanAlphabetsHaveOneEach) {
  const std::string spec = "glyphs:classes=2,test_classes=3,images=1";
  EXPECT_EQ(open_dataset(spec, Split::kTrain).categories().size(), 2U);
  EXPECT_EQ(open_dataset(spec, Split::kTest).categories().size(), 3U);
}

TEST(Glyphs, NoVariationLeavesOnlyTheThickness) {
  GlyphOptions options;
  options.variation = 0;
  options.thickness = 0.05;
  // Both drawings have the same centre line, so the thinner one's ink lies inside the other's.
  const Image a = draw_glyph(options, 0, 0, 0);
  const Image b = draw_glyph(options, 0, 0, 1);
  int only_a = 0, only_b = 0;
  for (std::size_t i = 0; i < a.bytes(); ++i) {
    only_a += a.data()[i] < b.data()[i];
    only_b += b.data()[i] < a.data()[i];
  }
  EXPECT_TRUE(only_a == 0 || only_b == 0) << only_a << " " << only_b;
}

TEST(Glyphs, InkIsGreyDarkOnWhiteAndAwayFromTheBorder) {
  for (const int size : {16, 64, 105}) {
    GlyphOptions options;
    options.size = size;
    for (std::int64_t character = 0; character < 40; ++character) {
      const Image image = draw_glyph(options, 1, character, character);
      double ink = 0;
      int between = 0;
      for (int y = 0; y < size; ++y) {
        for (int x = 0; x < size; ++x) {
          const std::uint8_t* p = image.pixel(x, y);
          EXPECT_TRUE(p[0] == p[1] && p[1] == p[2]);
          ink += (255 - p[0]) / 255.0;
          between += p[0] != 0 && p[0] != 255;
          if (x == 0 || y == 0 || x == size - 1 || y == size - 1) {
            EXPECT_EQ(p[0], 255) << "character " << character << " touches the border";
          }
        }
      }
      // 1 % is a single short stroke, 40 % would be a blot.
      EXPECT_GT(ink, 0.01 * size * size) << character;
      EXPECT_LT(ink, 0.40 * size * size) << character;
      EXPECT_GT(between, size) << "edges are anti-aliased";
    }
  }
}

TEST(Glyphs, SplitsHaveNoAlphabetInCommonAndTheSizesAskedFor) {
  const std::string spec = "glyphs:classes=11,alphabets=3,test_classes=7,test_alphabets=2,images=4";
  const Dataset train = open_dataset(spec, Split::kTrain);
  const Dataset test = open_dataset(spec, Split::kTest);
  EXPECT_EQ(train.classes().size(), 11U);
  EXPECT_EQ(train.size(), 44);
  EXPECT_EQ(train.categories().size(), 3U);
  EXPECT_EQ(test.classes().size(), 7U);
  EXPECT_EQ(test.categories().size(), 2U);
  std::set<std::string> seen(train.categories().begin(), train.categories().end());
  for (const std::string& name : test.categories()) EXPECT_FALSE(seen.contains(name)) << name;
  std::set<std::string> names;
  for (std::int64_t i = 0; i < train.size(); ++i) names.insert(train.item_name(i));
  EXPECT_EQ(names.size(), 44U);
  EXPECT_EQ(dataset_splits(read_data_spec(spec)),
            (std::vector<Split>{Split::kTrain, Split::kTest}));
  EXPECT_EQ(open_dataset(spec + ",val_classes=0.2", Split::kVal).classes().size(), 2U);
}

TEST(Glyphs, MoreTrainingClassesLeaveTheTestSetAsItIs) {
  const Dataset a = open_dataset("glyphs:test_classes=6,test_alphabets=2,images=2", Split::kTest);
  const Dataset b = open_dataset(
      "glyphs:classes=400,alphabets=9,test_classes=6,test_alphabets=2,images=2", Split::kTest);
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  for (std::int64_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_pixels(a.load(i), b.load(i)));
}

// Options that change the drawings must change the fingerprint: the names alone stay the same.
TEST(Glyphs, TheFingerprintHoldsWhatTheyAreDrawnBy) {
  const std::string spec = "glyphs:classes=4,images=2,alphabets=2";
  const std::uint64_t plain = open_dataset(spec, Split::kTrain).fingerprint();
  for (const char* other :
       {"seed=1", "size=32", "variation=0.5", "bend=0.1", "place=0.1", "stretch=0.1", "slant=1",
        "turn=1", "warp=0.1", "shift=0.1", "thickness=0.1"}) {
    EXPECT_NE(open_dataset(spec + "," + other, Split::kTrain).fingerprint(), plain) << other;
  }
  EXPECT_EQ(open_dataset(spec + ",seed=0", Split::kTrain).fingerprint(), plain);
}

// Nearest neighbours of blurred pixels, without any learning. The result must be far above chance
// (1 %), so that classes are recognisable, and far below 1, so that there is something to learn.
// Omniglot's three test alphabets give 0.40.
TEST(Glyphs, PixelsAloneDoNotSolveThem) {
  const Dataset data = open_dataset("glyphs:images=10", Split::kTest);
  constexpr int kGrid = 16;
  std::vector<std::vector<float>> features;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const Image image = data.load(i);
    std::vector<float> f(kGrid * kGrid);
    for (int y = 0; y < 64; ++y) {
      for (int x = 0; x < 64; ++x) {
        f[at(y / 4 * kGrid + x / 4)] += static_cast<float>(255 - image.pixel(x, y)[0]);
      }
    }
    float square = 0;
    for (const float v : f) square += v * v;
    for (float& v : f) v /= std::sqrt(square);
    features.push_back(std::move(f));
  }
  int hits = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    float best = -1;
    std::size_t nearest = 0;
    for (std::size_t j = 0; j < features.size(); ++j) {
      float dot = 0;
      for (std::size_t d = 0; d < features[i].size(); ++d) dot += features[i][d] * features[j][d];
      if (j != i && dot > best) {
        best = dot;
        nearest = j;
      }
    }
    hits +=
        data.label(static_cast<std::int64_t>(i)) == data.label(static_cast<std::int64_t>(nearest));
  }
  const double r1 = hits / static_cast<double>(features.size());
  RecordProperty("pixel_recall_at_1", fmt::format("{:.3f}", r1));
  EXPECT_GT(r1, 0.10);
  EXPECT_LT(r1, 0.40);
}

TEST(Glyphs, WrongValuesAreUsageErrors) {
  for (const char* spec :
       {"glyphs:classes=0", "glyphs:classes=x", "glyphs:classes=3,alphabets=4", "glyphs:size=7",
        "glyphs:size=4096", "glyphs:bend=-1", "glyphs:images=0"}) {
    message_of<UsageError>([&] { open_dataset(spec, Split::kTrain); });
  }
  const std::string many = message_of<UsageError>(
      [] { open_dataset("glyphs:classes=1048576,images=1048576", Split::kTrain); });
  EXPECT_TRUE(
      holds(many, "classes=1048576 of images=1048576 are 1099511627776 pictures, more than"));
  glyph_options(read_data_spec("glyphs:classes=1048576,images=16"));
  message_of<UsageError>([] { glyph_options(read_data_spec("glyphs:classes=986896,images=17")); });
}

}  // namespace
}  // namespace rk
