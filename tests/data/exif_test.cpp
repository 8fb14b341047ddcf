// Tests of the EXIF orientation: on files made from parts, against a plain reader that throws at
// every end, and on hostile bytes in memory that ends where the file does.
#include "data/images/exif.h"

#include "data/images/encode_png.h"
#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/sanitizers.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "tests/data/picture_folder.h"
#include "tests/data/png_chunk.h"
#include "tests/data/rotated_png.h"
#include "tests/support/little_memory.h"
#include "tests/support/messages.h"
#include "tests/support/peak_memory.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace rk {
namespace {

using Bytes = std::vector<unsigned char>;

void append(Bytes& to, std::uint64_t value, int bytes, bool little) {
  for (int i = 0; i < bytes; ++i) {
    to.push_back(static_cast<unsigned char>(value >> (8 * (little ? i : bytes - 1 - i))));
  }
}

void append(Bytes& to, std::string_view text) {
  for (const char c : text) to.push_back(static_cast<unsigned char>(c));
}

void append(Bytes& to, const Bytes& more) {
  for (const unsigned char byte : more) to.push_back(byte);
}

struct Block {
  int orientation = 1;
  bool little = true;
  int fields_before = 0, fields_behind = 0;
  int gap = 0;    // bytes between the header and the directory
  int type = 3;   // SHORT
  int count = 1;  // of values; those after the first are 7
};

// Bytes of a value of each type; 0: none that an orientation may have.
constexpr std::array<int, 14> kTypeBytes = {0, 0, 0, 2, 4, 0, 1, 0, 2, 4, 0, 0, 0, 0};

Bytes tiff_of(const Block& block) {
  Bytes out;
  append(out, block.little ? "II" : "MM");
  append(out, 42, 2, block.little);
  append(out, static_cast<std::uint64_t>(8 + block.gap), 4, block.little);
  out.resize(out.size() + static_cast<std::size_t>(block.gap), 0x5A);
  append(out, static_cast<std::uint64_t>(block.fields_before + 1 + block.fields_behind), 2,
         block.little);
  const auto other = [&](int tag) {
    append(out, static_cast<std::uint64_t>(tag), 2, block.little);
    append(out, 4, 2, block.little);
    append(out, 1, 4, block.little);
    append(out, 6, 4, block.little);
  };
  for (int i = 0; i < block.fields_before; ++i) other(0x0100 + i % 0x12);
  append(out, 0x0112, 2, block.little);
  append(out, static_cast<std::uint64_t>(block.type), 2, block.little);
  append(out, static_cast<std::uint64_t>(block.count), 4, block.little);
  const int each = std::max(kTypeBytes[static_cast<std::size_t>(block.type)], 1);
  Bytes values;
  for (int i = 0; i < block.count; ++i) {
    append(values, static_cast<std::uint64_t>(i == 0 ? block.orientation : 7), each, block.little);
  }
  const std::size_t behind = out.size() + 8 + 12 * static_cast<std::size_t>(block.fields_behind);
  const bool inside = values.size() <= 4;
  if (inside) {
    values.resize(4, 0);
    append(out, values);
  } else {
    append(out, behind, 4, block.little);
  }
  for (int i = 0; i < block.fields_behind; ++i) other(0x0113 + i);
  append(out, 0, 4, block.little);  // no further directory
  if (!inside) append(out, values);
  return out;
}

Bytes segment(int marker, const Bytes& payload) {
  Bytes out = {0xFF, static_cast<unsigned char>(marker)};
  append(out, payload.size() + 2, 2, false);
  append(out, payload);
  return out;
}

// The head of a JPEG, up to the first scan: the reader looks no further.
Bytes jpeg_of(const Bytes& tiff, const Bytes& between = {}) {
  Bytes out = {0xFF, 0xD8};
  append(out, between);
  Bytes payload;
  append(payload, std::string_view("Exif\0\0", 6));
  append(payload, tiff);
  append(out, segment(0xE1, payload));
  append(out, segment(0xDA, Bytes(3, 1)));
  return out;
}

void append_chunk(Bytes& to, std::string_view name, const Bytes& content) {
  append(to, content.size(), 4, false);
  append(to, name);
  append(to, content);
  append(to, 0, 4, false);  // the checksum, which only the decoder verifies
}

Bytes png_of(const Bytes& tiff, bool behind_data, bool with_beginning = false) {
  Bytes out;
  append(out, "\x89PNG\r\n\x1a\n");
  append_chunk(out, "IHDR", Bytes(13, 1));
  if (behind_data) append_chunk(out, "IDAT", Bytes(50, 7));
  Bytes content;
  if (with_beginning) append(content, std::string_view("Exif\0\0", 6));
  append(content, tiff);
  append_chunk(out, "eXIf", content);
  append_chunk(out, "IEND", {});
  return out;
}

int orientation_of(const Bytes& file) {
  return exif_orientation(std::as_bytes(std::span(file.data(), file.size())));
}

// The definition, written with vectors whose at() throws beyond the end. Returns 1 if the file has
// no valid orientation.
class Plain {
 public:
  explicit Plain(const Bytes& file) : file_(file) {}
  int orientation() const {
    try {
      if (file_.at(0) == 0xFF && file_.at(1) == 0xD8) return of_tiff(in_jpeg());
      const Bytes png = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
      if (part(file_, 0, 8) == png) return of_tiff(in_png());
    } catch (const std::out_of_range&) {
    }
    return 1;
  }

 private:
  static Bytes part(const Bytes& from, std::size_t begin, std::size_t length) {
    Bytes out;
    for (std::size_t i = begin; i < std::min(from.size(), begin + length); ++i) {
      out.push_back(from.at(i));
    }
    return out;
  }
  static std::size_t number(const Bytes& from, std::size_t begin, int bytes, bool little) {
    std::size_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      const int place = little ? bytes - 1 - i : i;
      value = value * 256 + from.at(begin + static_cast<std::size_t>(place));
    }
    return value;
  }
  Bytes in_jpeg() const {
    for (std::size_t at = 2;;) {
      if (file_.at(at) != 0xFF) return {};
      if (file_.at(at + 1) == 0xFF) {
        ++at;
        continue;
      }
      if (file_.at(at + 1) == 0xDA || file_.at(at + 1) == 0xD9) return {};
      const std::size_t length = number(file_, at + 2, 2, false);
      if (length < 2) return {};
      const Bytes payload = part(file_, at + 4, length - 2);
      if (file_.at(at + 1) == 0xE1 && part(payload, 0, 6) == Bytes{'E', 'x', 'i', 'f', 0, 0}) {
        return part(payload, 6, payload.size());
      }
      at += 2 + length;
    }
  }
  Bytes in_png() const {
    for (std::size_t at = 8;;) {
      (void)file_.at(at + 11);
      const std::size_t length = number(file_, at, 4, false);
      const Bytes name = part(file_, at + 4, 4);
      if (name == Bytes{'e', 'X', 'I', 'f'}) {
        const Bytes content = part(file_, at + 8, length);
        const bool begins = part(content, 0, 6) == Bytes{'E', 'x', 'i', 'f', 0, 0};
        return part(content, begins ? 6 : 0, content.size());
      }
      if (name == Bytes{'I', 'E', 'N', 'D'}) return {};
      at += 12 + length;
    }
  }
  static int of_tiff(const Bytes& tiff) {
    const bool little = part(tiff, 0, 4) == Bytes{'I', 'I', 42, 0};
    if (!little && part(tiff, 0, 4) != Bytes{'M', 'M', 0, 42}) return 1;
    const std::size_t directory = number(tiff, 4, 4, little);
    const std::size_t fields = number(tiff, directory, 2, little);
    for (std::size_t i = 0; i < fields; ++i) {
      const std::size_t field = directory + 2 + 12 * i;
      (void)tiff.at(field + 11);
      if (number(tiff, field, 2, little) != 0x0112) continue;
      const std::size_t type = number(tiff, field + 2, 2, little);
      const std::size_t count = number(tiff, field + 4, 4, little);
      if (type >= kTypeBytes.size() || kTypeBytes[type] == 0 || count == 0) return 1;
      const auto each = static_cast<std::size_t>(kTypeBytes[type]);
      const Bytes values = part(
          tiff, each * count <= 4 ? field + 8 : number(tiff, field + 8, 4, little), each * count);
      if (values.size() < each * count) return 1;
      const std::size_t value = number(values, 0, kTypeBytes[type], little);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
    return 1;
  }

  const Bytes& file_;
};

Bytes drawn_file(CounterRandom& random) {
  constexpr std::array<int, 10> kTypes = {3, 3, 3, 3, 4, 6, 8, 9, 1, 13};
  const Block block{.orientation = 1 + static_cast<int>(random.below(8)),
                    .little = random.below(2) == 0,
                    .fields_before = static_cast<int>(random.below(4)),
                    .fields_behind = static_cast<int>(random.below(4)),
                    .gap = static_cast<int>(random.below(3)) * 2,
                    .type = kTypes[static_cast<std::size_t>(random.below(kTypes.size()))],
                    .count = 1 + static_cast<int>(random.below(4) == 0 ? random.below(5) : 0)};
  if (random.below(2) == 0) {
    return png_of(tiff_of(block), random.below(2) == 0, random.below(2) == 0);
  }
  Bytes between;
  for (std::int64_t i = random.below(3); i > 0; --i) {
    const Bytes content(static_cast<std::size_t>(random.below(9)), 'x');
    append(between, segment(random.below(2) == 0 ? 0xE0 : 0xE1, content));
    if (random.below(2) == 0) between.push_back(0xFF);  // a fill byte
  }
  return jpeg_of(tiff_of(block), between);
}

TEST(Exif, EveryOrientationInBothOrdersOfBytes) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little : {true, false}) {
      for (const int before : {0, 3}) {
        const Bytes tiff = tiff_of({orientation, little, before, 2, before * 2});
        EXPECT_EQ(orientation_of(jpeg_of(tiff)), orientation);
        EXPECT_EQ(orientation_of(jpeg_of(tiff, segment(0xE0, Bytes(14, 'J')))), orientation);
        EXPECT_EQ(orientation_of(png_of(tiff, false)), orientation);
        EXPECT_EQ(orientation_of(png_of(tiff, true)), orientation);
        EXPECT_EQ(orientation_of(png_of(tiff, true, true)), orientation);
        for (const int type : {3, 4, 6, 8, 9}) {  // whole numbers, unsigned and signed
          for (const int count : {1, 2, 5}) {
            const Bytes odd = tiff_of({orientation, little, before, 2, before * 2, type, count});
            EXPECT_EQ(orientation_of(jpeg_of(odd)), orientation) << type << " x " << count;
            EXPECT_EQ(orientation_of(png_of(odd, false)), orientation) << type << " x " << count;
          }
        }
      }
    }
  }
  for (const int nonsense : {0, 9, 256, 65535}) {
    EXPECT_EQ(orientation_of(jpeg_of(tiff_of({.orientation = nonsense}))), 1);
    EXPECT_EQ(orientation_of(jpeg_of(tiff_of({.orientation = nonsense + 65536, .type = 4}))), 1);
  }
  for (const int type : {1, 2, 5, 7, 10, 11, 12}) {  // bytes, text, fractions, floating point
    EXPECT_EQ(orientation_of(jpeg_of(tiff_of({.orientation = 6, .type = type}))), 1) << type;
  }
  EXPECT_EQ(orientation_of(jpeg_of(tiff_of({.orientation = 6, .count = 0}))), 1);
  EXPECT_EQ(orientation_of({}), 1);
  EXPECT_EQ(orientation_of({0xFF, 0xD8}), 1);
  EXPECT_EQ(orientation_of(Bytes(100, 0xFF)), 1);
}

// Whole, truncated and changed files, each placed right before a protected page: a read beyond the
// file's end crashes the test.
TEST(Exif, AgreesWithThePlainReaderAndStaysInsideTheFile) {
  const std::uint64_t seed = random_seed();
  CounterRandom random(seed, 0, 0);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* two = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  auto* const end = static_cast<unsigned char*>(two) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  const std::array<int, 7> telling = {0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF};
  int not_upright = 0;
  for (int round = 0; round < 50'000; ++round) {
    Bytes file = drawn_file(random);
    for (std::int64_t changes = random.below(4); changes > 0; --changes) {
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(file.size())));
      file[at] = static_cast<unsigned char>(
          random.below(2) == 0 ? random.below(256)
                               : telling[static_cast<std::size_t>(random.below(7))]);
    }
    if (random.below(4) == 0) {
      file.resize(static_cast<std::size_t>(random.below(static_cast<std::int64_t>(file.size()))));
    }
    ASSERT_LE(file.size(), page);
    unsigned char* const begin = end - file.size();
    if (!file.empty()) std::memcpy(begin, file.data(), file.size());
    const int found = exif_orientation(std::as_bytes(std::span(begin, file.size())));
    ASSERT_EQ(found, Plain(file).orientation()) << "round " << round << " of seed " << seed;
    not_upright += found == 1 ? 0 : 1;
  }
  EXPECT_GT(not_upright, 12'500);
  munmap(two, 2 * page);
}

// What a viewer must show for each orientation of a picture of 3 x 2 pixels, numbered in the order
// in which they are stored.
TEST(Exif, TurnsUpright) {
  const std::vector<std::vector<int>> seen = {
      {0, 1, 2, 3, 4, 5},   // as stored
      {2, 1, 0, 5, 4, 3},   // mirrored
      {5, 4, 3, 2, 1, 0},   // upside down
      {3, 4, 5, 0, 1, 2},   // mirrored upside down
      {0, 3, 1, 4, 2, 5},   // the first row on the left
      {3, 0, 4, 1, 5, 2},   // the first row on the right
      {5, 2, 4, 1, 3, 0},   // the first row on the right, from below
      {2, 5, 1, 4, 0, 3}};  // the first row on the left, from below
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image image(3, 2);
    for (int i = 0; i < 6; ++i) {
      for (int c = 0; c < 3; ++c) {
        image.data()[i * 3 + c] = static_cast<std::uint8_t>(10 * i + c);
      }
    }
    const Image turned = turn_upright(std::move(image), orientation, "x");
    ASSERT_EQ(turned.width(), orientation < 5 ? 3 : 2);
    ASSERT_EQ(turned.height(), orientation < 5 ? 2 : 3);
    for (int i = 0; i < 6; ++i) {
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(
            turned.data()[i * 3 + c],
            10 * seen[static_cast<std::size_t>(orientation - 1)][static_cast<std::size_t>(i)] + c)
            << orientation;
      }
    }
  }
}

// Turning and turning back must restore a picture that is larger than the strips in which rows
// become columns and no multiple of them.
TEST(Exif, TurningThereAndBackIsNothing) {
  constexpr std::array<int, 9> kBack = {0, 1, 2, 3, 4, 5, 8, 7, 6};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image image(37, 53);
    for (std::size_t i = 0; i < image.bytes(); ++i) {
      image.data()[i] = static_cast<std::uint8_t>(i * i % 251);
    }
    const std::vector<std::uint8_t> before(image.data(), image.data() + image.bytes());
    Image turned = turn_upright(std::move(image), orientation, "x");
    EXPECT_EQ(turned.width(), orientation < 5 ? 37 : 53);
    const Image back =
        turn_upright(std::move(turned), kBack[static_cast<std::size_t>(orientation)], "x");
    EXPECT_TRUE(std::equal(before.begin(), before.end(), back.data())) << orientation;
  }
}

// Neither two copies of a picture beside its file's bytes, nor two of one that keeps its sides.
// Each way is compared with reading alone, which holds the file and one picture.
TEST(Exif, TurningTakesNoMoreMemoryThanItNeeds) {
  if (RK_SANITIZED) GTEST_SKIP() << "sanitizers keep what was freed";
  const TemporaryFolder folder;
  // beside: bytes of the file that say nothing of its pixels.
  const auto expect_no_more = [&](int side, int orientation, std::size_t beside) {
    Image image(side, side);
    std::memset(image.data(), 7, image.bytes());
    const std::string png = rotated_png(text_of(encode_png(image)), orientation);
    folder.write("photo.png",
                 png.substr(0, 33) + png_chunk("iTXt", std::string(beside, 'x')) + png.substr(33));
    const std::string path = folder.in("photo.png");
    const auto peak = [&](bool upright) { return peak_bytes([&] { read_photo(path, upright); }); };
    EXPECT_LT(peak(true), peak(false) + static_cast<std::int64_t>(image.bytes() / 2))
        << orientation;
  };
  // A file as large as its pixels, both above the 32 MiB up to which the C library may keep memory
  // that is freed.
  expect_no_more(3500, 6, std::size_t{36} << 20);
  for (const int orientation : {2, 3, 4}) expect_no_more(2000, orientation, 4);
}

// The file may be good, so that it must not count as a bad picture.
TEST(Exif, WithoutMemoryToTurnTheSystemIsBlamed) {
  if (RK_SANITIZED) GTEST_SKIP() << "sanitizers reserve more addresses than any limit";
  Image image(8000, 8000);
  const LittleMemory little(std::int64_t{64} << 20);
  const std::string why =
      message_if_any<SystemError>([&] { (void)turn_upright(std::move(image), 6, "photo.jpg"); });
  EXPECT_TRUE(holds(why, "photo.jpg: its 8000 x 8000 pixels take 183 MiB"));
}

TEST(Exif, FoldersTurnWhereAskedAndCountElsewhere) {
  const PictureFolder folder;
  folder.classes("c", 1, 2);
  folder.write("c0/0.png", rotated_png(file_text(folder.in("c0/0.png"))));

  const Dataset stored = open_dataset(folder.spec(), Split::kTrain);
  EXPECT_EQ(stored.load(0).width(), 24);
  EXPECT_EQ(stored.load(1).width(), 24);
  EXPECT_EQ(stored.rotated(), 1);
  const Dataset turned = open_dataset(folder.spec() + ",exif=turn", Split::kTrain);
  EXPECT_EQ(turned.load(0).width(), 18);
  EXPECT_EQ(turned.load(0).height(), 24);
  EXPECT_EQ(turned.load(1).width(), 24);
  EXPECT_EQ(turned.rotated(), 0);
  EXPECT_TRUE(holds(
      message_of<UsageError>([&] { open_dataset(folder.spec() + ",exif=yes", Split::kTrain); }),
      "exif=yes is neither ignore nor turn"));
}

}  // namespace
}  // namespace rk
