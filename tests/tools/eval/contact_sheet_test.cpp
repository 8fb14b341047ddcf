#include "tools/eval/contact_sheet.h"

#include "data/images/encode_png.h"
#include "tests/data/rotated_png.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace rk {
namespace {

constexpr int kResultLeft = 8 + 128 + 32;

// A white picture: the sheet itself uses no white.
void write_white(const TemporaryFolder& folder, const std::string& name, int width, int height) {
  Image image(width, height);
  std::memset(image.data(), 255, image.bytes());
  const std::vector<std::byte> png = encode_png(image);
  folder.write(name, {reinterpret_cast<const char*>(png.data()), png.size()});
}

TEST(ContactSheet, PicturesKeepTheirProportions) {
  const TemporaryFolder folder;
  write_white(folder, "wide.png", 40, 10);
  const std::string wide = (folder.path() / "wide.png").string();
  std::vector<std::string> problems;
  const Image sheet = contact_sheet({{wide, {{wide, 0.25F}}}}, {}, problems);
  EXPECT_TRUE(problems.empty());
  for (const int left : {8, kResultLeft}) {
    int white = 0;
    for (int y = 8; y < 8 + 128; ++y) {
      for (int x = left; x < left + 128; ++x) white += *sheet.pixel(x, y) == 255 ? 1 : 0;
    }
    EXPECT_EQ(white, 128 * 32);
    EXPECT_EQ(*sheet.pixel(left, 8 + 48), 255);
    EXPECT_EQ(*sheet.pixel(left + 127, 8 + 79), 255);
  }
}

// A sheet must show pictures as the network saw them: turned by EXIF, or as stored.
TEST(ContactSheet, PicturesAreTurnedWhereTheNetworkSawThemSo) {
  const TemporaryFolder folder;
  Image image(40, 10);
  std::fill_n(image.data(), image.bytes(), std::uint8_t{255});
  const std::vector<std::byte> png = encode_png(image);
  folder.write("lies.png", rotated_png({reinterpret_cast<const char*>(png.data()), png.size()}));
  const std::string lies = (folder.path() / "lies.png").string();
  const auto upright = [](const Image& sheet, int left) {
    return *sheet.pixel(left + 64, 8 + 2) == 255 && *sheet.pixel(left + 2, 8 + 64) != 255;
  };
  for (const bool queries : {false, true}) {
    std::vector<std::string> problems;
    const Image sheet = contact_sheet({{lies, {{lies, 0.25F}}}},
                                      {.queries = queries, .results = !queries}, problems);
    EXPECT_TRUE(problems.empty());
    EXPECT_EQ(upright(sheet, 8), queries);
    EXPECT_EQ(upright(sheet, kResultLeft), !queries);
  }
}

TEST(ContactSheet, ScoresStandBelowTheirPictures) {
  const TemporaryFolder folder;
  write_white(folder, "a.png", 8, 8);
  const std::string a = (folder.path() / "a.png").string();
  const auto caption = [&](float score) {
    std::vector<std::string> problems;
    const Image sheet = contact_sheet({{a, {{a, score}}}}, {}, problems);
    const std::size_t begin = static_cast<std::size_t>(8 + 128) * sheet.row_bytes();
    return std::string(reinterpret_cast<const char*>(sheet.data()) + begin, sheet.bytes() - begin);
  };
  EXPECT_EQ(caption(0.25F), caption(0.25F));
  EXPECT_NE(caption(0.25F), caption(0.26F));
  EXPECT_NE(caption(0.25F), caption(-0.25F));
}

// In dots of three pixels, three dots wide and five high, with one between characters.
TEST(ContactSheet, ScoresAreReadable) {
  const auto caption = [](float score, int characters) {
    std::vector<std::string> problems;
    const Image sheet = contact_sheet({{"/nowhere", {{"/nowhere", score}}}}, {}, problems);
    std::vector<std::string> rows(5);
    for (int y = 0; y < 5; ++y) {
      for (int x = 0; x < 4 * characters - 1; ++x) {
        const bool ink = *sheet.pixel(kResultLeft + 3 * x + 1, 8 + 128 + 4 + 3 * y + 1) == 60;
        rows[static_cast<std::size_t>(y)] += ink ? '#' : '.';
      }
    }
    return rows;
  };
  EXPECT_EQ(caption(0.4726F, 6), (std::vector<std::string>{"###.....#.#.###.###.###",  //
                                                           "#.#.....#.#...#...#.#..",  //
                                                           "#.#.....###...#.###.###",  //
                                                           "#.#.......#..#..#...#.#",  //
                                                           "###..#....#..#..###.###"}));
  EXPECT_EQ(caption(-1.3589F, 7), (std::vector<std::string>{".....#......###.###.###.###",  //
                                                            "....##........#.#...#.#.#.#",  //
                                                            "###..#......###.###.###.###",  //
                                                            ".....#........#...#.#.#...#",  //
                                                            "....###..#..###.###.###.###"}));
}

TEST(ContactSheet, IsBoundedAndNamesWhatItCannotShow) {
  SheetRow row{"/nowhere/query.png", {}};
  for (int i = 0; i < 12; ++i) row.results.push_back({"/nowhere/result.png", 1});
  std::vector<std::string> problems;
  const Image sheet = contact_sheet(std::vector<SheetRow>(60, row), {}, problems);
  EXPECT_EQ(sheet.height(), 8 + 2 * 50 * (128 + 23 + 8));
  ASSERT_EQ(problems.size(), 50U * 13U);
  EXPECT_TRUE(holds(problems.front(), "/nowhere/query.png: cannot be opened"));
  EXPECT_EQ(*sheet.pixel(kResultLeft + 5, 8 + 5), 200);  // grey in place of the picture
  // Ten results fill a line, eleven begin another.
  row.results.resize(10);
  EXPECT_EQ(contact_sheet({row}, {}, problems).height(), 8 + 128 + 23 + 8);
  row.results.push_back(row.results.front());
  EXPECT_EQ(contact_sheet({row}, {}, problems).height(), 8 + 2 * (128 + 23 + 8));
  problems.clear();
  row.results.resize(20'000, row.results.front());
  EXPECT_EQ(contact_sheet({row}, {}, problems).height(), 8 + 5 * (128 + 23 + 8));
  EXPECT_EQ(problems.size(), 1U + 50U);
}

}  // namespace
}  // namespace rk
