#include "data/images/decode.h"
#include "engine/base/sanitizers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>

#include "data/images/decoders.h"
#include "data/images/encode_png.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "tests/data/png_chunk.h"
#include "tests/support/folder_test.h"
#include "tests/support/goldens/image_goldens.h"
#include "tests/support/heard_notes.h"
#include "tests/support/little_memory.h"
#include "tests/support/messages.h"
#include "tests/support/peak_memory.h"
#include "tests/support/random_seed.h"
#include "tests/support/read_image.h"
#include "tests/support/temporary_folder.h"

namespace rk {
namespace {

const std::filesystem::path kGoldens = std::filesystem::path(RK_TEST_GOLDEN) / "images";

std::vector<std::byte> golden_file(const std::string& name) {
  return read_file((kGoldens / name).string(), kMaxImageFileBytes);
}

std::string hash(const Image& image) {
  return golden::sha256(std::as_bytes(std::span(image.data(), image.bytes())));
}

// Returns the message of the refusal, or "" if the bytes decode.
std::string refusal(std::span<const std::byte> file) {
  return message_if_any<InputError>([&] { (void)decode_image(file, "x"); });
}

TEST(Decode, EveryGoldenFile) {
  const golden::ImageGoldens goldens(kGoldens);
  ASSERT_GE(goldens.manifest.at("files").size(), 100U);
  for (const nlohmann::json& entry : goldens.manifest.at("files")) {
    EXPECT_EQ(golden::check_decoding(goldens, entry).complaint, "") << entry.at("file");
  }
}

TEST(Decode, RefusalNamesWhatTheFileIs) {
  const auto why = [](const char* name) { return refusal(golden_file(name)); };
  EXPECT_TRUE(holds(why("files/animated.gif"), "GIF"));
  EXPECT_TRUE(holds(why("files/lossy.webp"), "WebP"));
  EXPECT_TRUE(holds(why("files/rgb.tif"), "TIFF"));
  EXPECT_TRUE(holds(why("files/gray.pgm"), "PNM"));
  EXPECT_TRUE(holds(why("bad/heic_named.jpg"), "HEIC"));
  EXPECT_TRUE(holds(why("bad/html.jpg"), "HTML"));
  EXPECT_TRUE(holds(why("bad/lfs_pointer.jpg"), "git-lfs"));
  EXPECT_TRUE(holds(why("bad/empty.jpg"), ": empty file; copy it again"));
  const std::string progressive = why("bad/bomb_memory.jpg");
  EXPECT_TRUE(holds(progressive, "a progressive JPEG of "));
  EXPECT_TRUE(
      holds(progressive, "more than 256 MB to decode; save it smaller or as a baseline JPEG"));
  EXPECT_TRUE(holds(refusal(bytes_of("\x01\x01\x01\x1c"
                                     "ftypavif")),
                    "AVIF"));
  for (const char* start : {"R", "RIFF", "RIFF123", "1", "12345"}) {
    EXPECT_TRUE(holds(refusal(bytes_of(start)), "(unknown format)")) << start;
  }
  const std::string wide = refusal(encode_png(Image(kMaxImageSide + 1, 1)));
  EXPECT_TRUE(holds(wide, "65501 x 1 pixels, above the limits (side 65500,"));
}

TEST(Decode, SizesReachTheirLimits) {
  EXPECT_EQ(refusal(encode_png(Image(kMaxImageSide, 1))), "");
  EXPECT_EQ(refusal(encode_png(Image(1, kMaxImageSide))), "");
  const auto said = [](long long width, long long height) {
    return message_if_any<InputError>([&] { check_image_size(width, height, "x"); });
  };
  static_assert(kMaxImagePixels == 12470 * 14351);
  EXPECT_EQ(said(12470, 14351), "");
  EXPECT_TRUE(holds(said(12470, 14352), "12470 x 14352 pixels, above the limits"));
  // Their product is above 2^31.
  EXPECT_TRUE(holds(said(kMaxImageSide, kMaxImageSide), "65500 x 65500 pixels, above the limits"));
}

// Inserts a chunk after the header of a PNG.
std::vector<std::byte> with_chunk(std::vector<std::byte> png, const std::string& name,
                                  std::size_t length) {
  const std::string chunk = png_chunk(name, std::string(length, 'x'));
  const std::span<const std::byte> bytes = bytes_of(chunk);
  png.insert(png.begin() + 33, bytes.begin(), bytes.end());
  return png;
}

// `png` with the window that its compressed data states changed to 256 bytes.
std::string with_small_window(const std::string& png) {
  const std::size_t at = png.find("IDAT");
  const auto number = [&](std::size_t place) { return static_cast<unsigned char>(png[place]); };
  std::size_t length = 0;
  for (std::size_t i = at - 4; i < at; ++i) length = length << 8 | number(i);
  std::string content = png.substr(at + 4, length);
  content[0] = 0x08;  // method deflate, and the base-2 logarithm of the window less 8
  const unsigned flags = static_cast<unsigned char>(content[1]) & 0xE0U;
  content[1] = static_cast<char>(flags + (31 - (0x0800 + flags) % 31) % 31);  // the check bits
  return png.substr(0, at - 4) + png_chunk("IDAT", content) + png.substr(at + 8 + length);
}

// Every second row repeats: what the compressed data refers to lies 18,002 bytes back.
TEST(DecodePng, AWindowStatedTooSmallIsNoDamage) {
  Image image(3000, 40);
  CounterRandom random(3, 0, 0);
  for (int y = 0; y < image.height(); ++y) {
    for (std::size_t i = 0; i < image.row_bytes(); ++i) {
      image.row(y)[i] = y < 2 ? static_cast<std::uint8_t>(random.below(256)) : image.row(y - 2)[i];
    }
  }
  const std::string png(text_of(encode_png(image)));
  ASSERT_LT(png.size(), image.bytes() / 8) << "nothing refers back";
  const std::string small = with_small_window(png);
  ASSERT_NE(small, png);
  EXPECT_EQ(hash(decode_image(bytes_of(small), "x")), hash(image));
}

TEST(DecodePng, AnIndexBeyondThePaletteIsBlack) {
  // A row of four pixels, with the indices 0, 1, 2 and 200, stored without compression.
  std::string png = "\x89PNG\r\n\x1a\n";
  png += png_chunk("IHDR", big_endian(4) + big_endian(1) + std::string("\x08\x03\0\0\0", 5));
  png += png_chunk("PLTE", "abcdef");
  png += png_chunk("IDAT", std::string("\x78\x01\x01\x05\0\xfa\xff\0\0\x01\x02\xc8", 12) +
                               big_endian(0x00d400cc));
  png += png_chunk("IEND", "");
  const Image image = decode_image(bytes_of(png), "x");
  const std::string pixels(reinterpret_cast<const char*>(image.data()), image.bytes());
  EXPECT_EQ(pixels, "abcdef" + std::string(6, '\0'));
}

// What says nothing about the pixels does not keep a picture from being read: a long text, or a
// palette (of whatever length) where each pixel has its own colour.
TEST(DecodePng, ChunksThatSayNothingAboutPixelsArePassedOver) {
  const std::vector<std::byte> rgb = golden_file("files/rgb8.png");
  const std::string pixels = hash(decode_image(rgb, "x"));
  EXPECT_EQ(hash(decode_image(with_chunk(rgb, "iTXt", 9'000'000), "x")), pixels);
  EXPECT_EQ(hash(decode_image(with_chunk(rgb, "PLTE", 6), "x")), pixels);
  EXPECT_EQ(hash(decode_image(with_chunk(rgb, "PLTE", 7), "x")), pixels);
  const std::vector<std::byte> gray = golden_file("files/gray8.png");
  EXPECT_EQ(hash(decode_image(with_chunk(gray, "PLTE", 6), "x")), hash(decode_image(gray, "x")));
  EXPECT_NE(refusal(with_chunk(golden_file("files/palette8.png"), "PLTE", 7)), "");
  EXPECT_NE(refusal(with_chunk(rgb, "ABCD", 6)), "") << "one that must be understood";
}

// A truncated file is never a picture, wherever the cut lies.
TEST(Decode, EveryPrefixIsRefused) {
  for (const char* name :
       {"files/tiny_3x2.jpg", "files/size_17x9.jpg", "files/one_pixel.png", "files/gray1.png",
        "files/interlaced_palette4.png", "files/palette8.bmp"}) {
    const std::vector<std::byte> file = golden_file(name);
    ASSERT_EQ(refusal(file), "") << name;
    for (std::size_t size = 0; size < file.size(); ++size) {
      ASSERT_NE(refusal(std::span(file).first(size)), "") << name << " cut to " << size << " bytes";
    }
  }
}

// Bytes changed at random give a picture within the limits or an InputError.
TEST(Decode, ChangedBytesNeverCrash) {
  int refused = 0;
  int decoded = 0;
  for (const char* name : {"files/size_17x9.jpg", "bad/scans_100.jpg", "files/gray4.png",
                           "files/palette4_trns.png", "files/palette8.bmp"}) {
    const std::vector<std::byte> original = golden_file(name);
    for (std::uint64_t round = 0; round < 400; ++round) {
      CounterRandom random(1, 0, round);
      std::vector<std::byte> file = original;
      // Half of the rounds change the first 200 bytes only: headers break more than pixels do.
      const auto reach = static_cast<std::int64_t>(
          round % 2 == 0 ? file.size() : std::min<std::size_t>(file.size(), 200));
      for (int change = 0; change < 3; ++change) {
        file[static_cast<std::size_t>(random.below(reach))] =
            static_cast<std::byte>(random.below(256));
      }
      try {
        const Image image = decode_image(file, "x");
        EXPECT_LE(static_cast<long long>(image.width()) * image.height(), kMaxImagePixels);
        ++decoded;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(decoded, 10);
}

constexpr int kScan = 0xDA;

// Where a JPEG's first marker of that code at or behind `from` begins; its size if there is none.
std::size_t find_marker(std::span<const std::byte> file, int code, std::size_t from = 0) {
  const char marker[] = {'\xFF', static_cast<char>(code)};
  return std::min(text_of(file).find(std::string_view(marker, 2), from), file.size());
}

// Two of libjpeg-turbo's warnings, which files of real cameras cause, say nothing about the pixels:
// such files must decode.
TEST(Decode, WarningsAboutHeadersAreNoDamage) {
  std::vector<std::byte> file = golden_file("files/q50_420.jpg");
  const std::string expected = hash(decode_image(file, "x"));

  std::vector<std::byte> revision = file;
  ASSERT_EQ(static_cast<char>(revision[6]), 'J');
  revision[11] = std::byte{9};  // JFIF 9.x
  EXPECT_EQ(hash(decode_image(revision, "x")), expected);

  std::vector<std::byte> range = file;
  const std::size_t at = find_marker(range, kScan);
  ASSERT_LT(at + 12, range.size());
  // Marker 2, length 2, count 1, three components of 2, Ss 1.
  std::byte& spectral_end = range[at + 12];
  ASSERT_EQ(spectral_end, std::byte{63});
  spectral_end = std::byte{0};
  EXPECT_EQ(hash(decode_image(range, "x")), expected);
}

// As Pillow's, and said: such a picture is white nearly everywhere.
TEST(Decode, GreyOf16BitsThatIsCutIsNoted) {
  const HeardNotes notes;
  decode_image(golden_file("files/gray16.png"), "deep.png");
  decode_image(golden_file("files/rgb16.png"), "colour.png");
  ASSERT_EQ(notes.lines.size(), 1U);
  EXPECT_TRUE(notes.lines[0].starts_with("deep.png: a grey PNG of 16 bits")) << notes.lines[0];
}

// Of opaque pictures too, whose alpha is not looked at.
TEST(Decode, AnAlphaChannelIsNoted) {
  const HeardNotes notes;
  decode_image(golden_file("files/rgb16.png"), "opaque.png");
  EXPECT_TRUE(notes.lines.empty());
  decode_image(golden_file("files/rgba8.png"), "cut_out.png");
  ASSERT_EQ(notes.lines.size(), 1U);
  EXPECT_TRUE(notes.lines[0].starts_with("cut_out.png: has an alpha channel")) << notes.lines[0];
}

// Padding before the end marker is harmless, other bytes are damage. The fuzzer found 260 damaged
// bytes that decoded to 23160 x 2048 pixels without a warning.
TEST(Decode, BytesBeforeTheEndOfAScanAreNoDamage) {
  const std::vector<std::byte> whole = golden_file("files/q75_420.jpg");
  const std::string expected = hash(decode_image(whole, "x"));
  const HeardNotes notes;
  for (const int padding : {1, 2, 500}) {
    std::vector<std::byte> file = whole;
    file.insert(file.end() - 2, static_cast<std::size_t>(padding), std::byte{0});
    EXPECT_EQ(hash(decode_image(file, "padded.jpg")), expected) << padding;
  }
  ASSERT_EQ(notes.lines.size(), 1U);  // one for all three files
  EXPECT_TRUE(holds(notes.lines[0], "padded.jpg: an odd JPEG"));

  std::vector<std::byte> other = whole;
  other.insert(other.end() - 2, 40, std::byte{7});
  EXPECT_TRUE(holds(refusal(other), "corrupt"));

  // Before a restart marker the extra bytes are picture data that was not decoded.
  for (int marker = 0xD0; marker <= 0xD7; ++marker) {
    std::vector<std::byte> file = golden_file("files/restart_rows.jpg");
    const std::size_t at = find_marker(file, marker);
    ASSERT_LT(at, file.size());
    file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), 3, std::byte{0});
    EXPECT_TRUE(holds(refusal(file), "corrupt")) << marker;
  }
}

// The picture of `file` as if it ended in front of scan number `scan`, counted from 0.
std::vector<std::byte> cut_before_scan(const std::vector<std::byte>& file, int scan) {
  std::size_t at = find_marker(file, kScan);
  for (int i = 0; i < scan; ++i) at = find_marker(file, kScan, at + 2);
  std::vector<std::byte> out(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(at));
  out.insert(out.end(), {std::byte{0xFF}, std::byte{0xD9}});
  return out;
}

// Such a file is no damage to the library: it warns of nothing.
TEST(Decode, AProgressivePictureWithoutItsLastScansIsNoted) {
  const std::vector<std::byte> whole = golden_file("files/prog_444.jpg");
  std::vector<std::string> notes;
  for (const int scans : {1, 3, 9, 100}) {
    const HeardNotes heard;
    (void)decode_image(cut_before_scan(whole, scans), fmt::format("{}.jpg", scans));
    notes.insert(notes.end(), heard.lines.begin(), heard.lines.end());
  }
  ASSERT_EQ(notes.size(), 3U);  // there are not a hundred
  for (const std::string& line : notes) {
    EXPECT_TRUE(holds(line, "ends before its last scans"));
  }
}

// A scan for each component.
std::vector<std::byte> baseline_of_three_scans() {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = info.image_height = 16;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_scan_info scans[3] = {};
  for (int c = 0; c < 3; ++c) {
    scans[c].comps_in_scan = 1;
    scans[c].component_index[0] = c;
    scans[c].Se = DCTSIZE2 - 1;
  }
  info.scan_info = scans;
  info.num_scans = 3;
  jpeg_start_compress(&info, TRUE);
  std::array<JSAMPLE, 48> row{};
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(5 * i);
  JSAMPROW pointer = row.data();
  while (info.next_scanline < info.image_height) jpeg_write_scanlines(&info, &pointer, 1);
  jpeg_finish_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> out(begin, begin + size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return out;
}

TEST(Decode, AComponentWithoutAScanIsDamage) {
  const std::vector<std::byte> whole = baseline_of_three_scans();
  EXPECT_EQ(refusal(whole), "");
  EXPECT_EQ(refusal(cut_before_scan(whole, 3)), "");
  for (const int scans : {1, 2}) {
    EXPECT_TRUE(holds(refusal(cut_before_scan(whole, scans)), "a component has no scan")) << scans;
  }
}

TEST(Decode, ArithmeticCodingIsRefused) {
  EXPECT_TRUE(holds(refusal(golden_file("files/arithmetic.jpg")), "arithmetic"));
}

TEST(Decode, StorageIsReused) {
  Image image(600, 600);
  const std::uint8_t* storage = image.data();
  const std::vector<std::byte> file = golden_file("files/q75_420.jpg");
  decode_image(file, "x", image);
  EXPECT_EQ(image.data(), storage);
  EXPECT_EQ(image.width(), 500);
  EXPECT_EQ(hash(image), hash(decode_image(file, "x")));
}

TEST(Decode, ThreadsDoNotDisturbEachOther) {
  const std::vector<std::string> names{"files/q75_420.jpg", "files/rgb8.png",
                                       "bad/bit_flips.jpg", "files/cmyk_adobe.jpg",
                                       "bad/idat_bit.png",  "files/portrait_prog_420.jpg"};
  const auto outcome = [](std::span<const std::byte> file) {
    try {
      return hash(decode_image(file, "x"));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  std::vector<std::vector<std::byte>> files;
  std::vector<std::string> expected;
  for (const std::string& name : names) {
    files.push_back(golden_file(name));
    expected.push_back(outcome(files.back()));
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 3 * files.size(); ++i) {
        const std::size_t which = (i + t) % files.size();
        wrong[t] += outcome(files[which]) != expected[which] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Decode, InvertedCmykIsTheRoundedProduct) {
  for (unsigned c = 0; c < 256; ++c) {
    for (unsigned k = 0; k < 256; ++k) {
      ASSERT_EQ(multiply_inverted(c, k), std::lround(c * k / 255.0)) << c << " " << k;
    }
  }
}

// What it costs to decode one file, measured in a child process.
struct Cost {
  int exit_code = -1;
  double seconds = 0;
  long peak_mib = 0;
};

Cost cost_of(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 0;
    try {
      (void)read_image(path);
    } catch (const Error& error) {
      code = static_cast<int>(error.exit_code());
    } catch (...) {
      code = 99;
    }
    _exit(code);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || !WIFEXITED(status)) return {};
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {WEXITSTATUS(status), seconds(usage.ru_utime) + seconds(usage.ru_stime),
          usage.ru_maxrss >> 10};
}

// Limits processor time, so that a busy machine does not fail the test. Measured: 1 s and 51 MiB
// for the file of 505 scans, which takes minutes without the limit on scans; sanitizers need the
// rest.
TEST(Decode, BombsAreCheap) {
  for (const char* name : {"bad/bomb_scans.jpg", "bad/bomb_memory.jpg", "bad/bomb_60000.png",
                           "bad/bomb_65500.jpg", "bad/many_scans_small.jpg"}) {
    const Cost cost = cost_of((kGoldens / name).string());
    EXPECT_EQ(cost.exit_code, 3) << name;
    EXPECT_LT(cost.seconds, 30.0) << name;
    EXPECT_LT(cost.peak_mib, 1024) << name;  // the promise for files below 512 MB
    RecordProperty(std::string(name) + " seconds", std::to_string(cost.seconds));
    RecordProperty(std::string(name) + " MiB", std::to_string(cost.peak_mib));
  }
}

// The file may be good, so that it must not count as a bad picture.
TEST(Decode, WithoutMemoryTheSystemIsBlamed) {
  Image picture;
  const std::string why = message_if_any<SystemError>(
      [&] { resize_picture(picture, 1 << 24, 1 << 24, "x.png"); });  // more than can be addressed
  EXPECT_TRUE(holds(why, "x.png: its 16777216 x 16777216 pixels take 805306368 MiB"));
}

// The same where the library asks for the memory: for three colours' coefficients, 50 MB each.
TEST(Decode, WithoutMemoryForAJpegTheSystemIsBlamed) {
  if (RK_SANITIZED) GTEST_SKIP() << "sanitizers reserve more addresses than any limit";
  std::vector<std::byte> file = golden_file("files/prog_444.jpg");
  const std::size_t frame = find_marker(file, 0xC2);
  ASSERT_LT(frame + 8, file.size());
  for (const std::size_t side : {5U, 7U}) {  // 5000 x 5000 pixels
    file[frame + side] = std::byte{5000 >> 8};
    file[frame + side + 1] = std::byte{5000 & 255};
  }
  const LittleMemory little(std::int64_t{64} << 20);
  const std::string why =
      message_if_any<SystemError>([&] { (void)decode_image(file, "large.jpg"); });
  EXPECT_TRUE(holds(why, "large.jpg: decoding it takes more memory than there is"));
}

// The same for a PNG's rows, of 196 KB each. What is left of the memory lies in smaller pieces.
TEST(Decode, WithoutMemoryForAPngTheSystemIsBlamed) {
  if (RK_SANITIZED) GTEST_SKIP() << "sanitizers reserve more addresses than any limit";
  Image wide(65500, 1);
  std::memset(wide.row(0), 7, wide.row_bytes());
  const std::vector<std::byte> file = encode_png(wide);
  Image out;
  decode_image(file, "wide.png", out);
  EXPECT_EQ(out.row(0)[3], 7);
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(100'000);
  std::string why;
  {
    const LittleMemory little(std::int64_t{1} << 20);
    while (char* piece = new (std::nothrow) char[std::size_t{64} << 10]) taken.emplace_back(piece);
    taken.pop_back();
    why = message_if_any<SystemError>([&] { decode_image(file, "wide.png", out); });
  }
  EXPECT_TRUE(holds(why, "wide.png: decoding it takes more memory than there is"));
}

class ReadImage : public FolderTest<TemporaryFolder> {
 protected:
  std::string why(const std::string& file) const {
    return message_of<InputError>([&] { (void)read_image(file); });
  }
};

TEST_F(ReadImage, TakesRegularFilesOnly) {
  EXPECT_TRUE(holds(why(in("none.jpg")), "No such file"));
  EXPECT_TRUE(holds(why(folder_.path().string()), "not a regular file"));
  EXPECT_TRUE(holds(why("/dev/zero"), "not a regular file"));
  ASSERT_EQ(mkfifo(in("pipe.jpg").c_str(), 0600), 0);
  EXPECT_TRUE(holds(why(in("pipe.jpg")), "not a regular file"));
  std::filesystem::create_symlink("loop.jpg", in("loop.jpg"));
  EXPECT_TRUE(why(in("loop.jpg")).starts_with(in("loop.jpg") + ": cannot be opened"));
}

TEST_F(ReadImage, FileSizeIsCapped) {
  std::ofstream(in("huge.jpg")).put('x');
  std::filesystem::resize_file(in("huge.jpg"), std::uintmax_t{100} << 30);  // sparse
  EXPECT_TRUE(holds(why(in("huge.jpg")), "102400 MiB, more than the limit of 256 MiB"));
}

TEST_F(ReadImage, NameSaysNothing) {
  std::filesystem::copy(kGoldens / "files/rgb8.png", in("photo.JPEG"));
  EXPECT_EQ(hash(read_image(in("photo.JPEG"))),
            hash(decode_image(golden_file("files/rgb8.png"), "x")));
}

void set_number(std::vector<std::byte>& file, std::size_t at, std::uint32_t value,
                std::size_t bytes = 4) {
  for (std::size_t i = 0; i < bytes; ++i) file[at + i] = std::byte(value >> (8 * i) & 255);
}

// Makes BMP files of 2 x 2 pixels byte by byte.
class Bmp {
 public:
  explicit Bmp(std::uint32_t bits) {
    const std::uint32_t palette = bits == 8 ? 2 * 4 : 0;
    file_.assign(54 + palette, std::byte{0});
    file_[0] = std::byte{'B'};
    file_[1] = std::byte{'M'};
    set(10, 54 + palette);
    set(14, 40);
    set(18, 2);
    set(22, 2);
    set(26, bits << 16 | 1);
    set(46, bits == 8 ? 2 : 0);
    // Row y, column x: blue is 10 y + x, green 50 more, red 100 more; with 8 bits, palette index x.
    if (bits == 8) {
      for (std::size_t colour = 0; colour < 2; ++colour) {
        for (std::size_t c = 0; c < 3; ++c) file_[54 + 4 * colour + c] = std::byte(50 * colour + c);
      }
    }
    for (int y = 1; y >= 0; --y) {
      for (int x = 0; x < 2; ++x) {
        for (std::uint32_t c = 0; c < bits / 8; ++c) {
          file_.push_back(std::byte(bits == 8 ? x : 10 * y + x + 50 * static_cast<int>(c)));
        }
      }
      while (file_.size() % 4 != (54 + palette) % 4) file_.push_back(std::byte{0});
    }
  }
  Bmp& set(std::size_t at, std::uint32_t value) {
    set_number(file_, at, value);
    return *this;
  }
  const std::vector<std::byte>& file() const { return file_; }

 private:
  std::vector<std::byte> file_;
};

TEST(DecodeBmp, RowsAndChannels) {
  for (const std::uint32_t bits : {24U, 32U}) {
    const Image image = decode_image(Bmp(bits).file(), "x");
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 2; ++x) {
        for (int c = 0; c < 3; ++c)
          EXPECT_EQ(image.pixel(x, y)[c], 10 * y + x + 50 * (2 - c)) << bits;
      }
    }
  }
  const Image palette = decode_image(Bmp(8).file(), "x");
  EXPECT_EQ(palette.pixel(0, 0)[0], 2);
  EXPECT_EQ(palette.pixel(1, 1)[0], 52);
  EXPECT_EQ(palette.pixel(1, 1)[2], 50);
  // A negative height stores the top row first.
  const Image flipped = decode_image(Bmp(24).set(22, static_cast<std::uint32_t>(-2)).file(), "x");
  EXPECT_EQ(flipped.pixel(0, 0)[2], 10);
  EXPECT_EQ(flipped.pixel(0, 1)[2], 0);
}

// A BMP with a palette, up to its pixels.
struct Indexed {
  std::uint32_t bits = 8;
  std::uint32_t width = 1, height = 1;
  std::uint32_t header = 40;  // 12: OS/2, with palette entries of three bytes
  std::uint32_t colours = 0;  // as stated; 0, and with OS/2: all that the bits can count
  std::uint32_t compression = 0;

  std::size_t entry() const { return header == 12 ? 3 : 4; }
  std::size_t entries() const {
    return header == 12 || colours == 0 ? std::size_t{1} << bits : colours;
  }
  std::size_t palette_at() const { return 14 + header; }
  std::size_t palette_end() const { return palette_at() + entry() * entries(); }

  std::vector<std::byte> head(std::uint32_t pixels_at) const {
    std::vector<std::byte> file(palette_end(), std::byte{0});
    file[0] = std::byte{'B'};
    file[1] = std::byte{'M'};
    set_number(file, 10, pixels_at);
    set_number(file, 14, header);
    const std::size_t side = header == 12 ? 2 : 4;
    set_number(file, 18, width, side);
    set_number(file, 18 + side, height, side);
    set_number(file, 18 + 2 * side, bits << 16 | 1);
    if (header == 12) return file;
    set_number(file, 30, compression);
    set_number(file, 46, colours);
    return file;
  }
};

// Against the definition: random files of every header, number of colours and place of the pixels,
// at widths around a byte's end and a row's padding.
TEST(DecodeBmp, PackedIndices) {
  const std::uint64_t seed = random_seed();
  CounterRandom random(seed, 0, 0);
  const auto below = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random.below(most));
  };
  for (int round = 0; round < 3000; ++round) {
    Indexed bmp;
    bmp.bits = std::array{1U, 4U, 8U}[below(3)];
    bmp.width = 1 + below(66);
    bmp.height = 1 + below(3);
    bmp.header = std::array{12U, 40U, 40U, 64U, 124U}[below(5)];
    if (bmp.bits == 8 && below(2) == 0) bmp.colours = 3 + below(254);
    if (bmp.bits == 4 && below(2) == 0) bmp.colours = 3 + below(18);
    const bool grey = bmp.bits == 8 && below(4) == 0;
    // Not stated, stated to be at the palette, behind the palette, and after a gap.
    const std::uint32_t place = below(4);
    const std::uint32_t gap = place == 3 ? 1 + below(9) : 0;
    const auto behind = static_cast<std::uint32_t>(bmp.palette_end());
    std::vector<std::byte> file =
        bmp.head(place == 0   ? 0
                 : place == 1 ? static_cast<std::uint32_t>(bmp.palette_at())
                              : behind + gap);
    for (std::size_t i = bmp.palette_at(); i < file.size(); ++i) {
      file[i] = std::byte(grey ? (i - bmp.palette_at()) / bmp.entry() : below(256));
    }
    const std::size_t row_bytes = (std::size_t{bmp.width} * bmp.bits + 31) / 32 * 4;
    for (std::size_t i = 0; i < gap + row_bytes * bmp.height; ++i) {
      file.push_back(std::byte(below(256)));
    }
    const auto level = [&](std::uint32_t x, std::uint32_t y, std::size_t c) {
      const std::size_t row = behind + gap + (bmp.height - 1 - y) * row_bytes;
      const std::size_t bit = std::size_t{x} * bmp.bits;
      const std::size_t index =
          std::to_integer<std::size_t>(file[row + bit / 8]) >> (8 - bmp.bits - bit % 8) &
          ((std::size_t{1} << bmp.bits) - 1);
      if (grey) return static_cast<int>(index);
      if (index >= bmp.entries()) return 0;
      return std::to_integer<int>(file[bmp.palette_at() + bmp.entry() * index + 2 - c]);
    };
    const Image image = decode_image(file, "x");
    ASSERT_EQ(image.width(), static_cast<int>(bmp.width));
    ASSERT_EQ(image.height(), static_cast<int>(bmp.height));
    for (std::uint32_t y = 0; y < bmp.height; ++y) {
      for (std::uint32_t x = 0; x < bmp.width; ++x) {
        for (std::size_t c = 0; c < 3; ++c) {
          ASSERT_EQ(image.pixel(static_cast<int>(x), static_cast<int>(y))[c], level(x, y, c))
              << bmp.bits << " bits, " << x << ", " << y << ", round " << round << " of seed "
              << seed;
        }
      }
    }
    ASSERT_NE(refusal(std::span(file).first(file.size() - 1)), "");
  }
}

// Codes drawn at random, and the indices that they stand for, row after row of the file.
struct Runs {
  std::vector<std::byte> codes;
  std::vector<std::uint32_t> indices;
};

Runs drawn_runs(const Indexed& bmp, CounterRandom& random) {
  const std::uint32_t most = 1U << bmp.bits;
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random.below(n)); };
  Runs runs;
  const auto add = [&](std::uint32_t first, std::uint32_t second) {
    runs.codes.insert(runs.codes.end(), {std::byte(first), std::byte(second)});
  };
  for (std::uint32_t y = 0; y < bmp.height; ++y) {
    std::uint32_t left = bmp.width;
    while (left > 0 && (left == bmp.width || below(20) > 0)) {
      const std::uint32_t n = 1 + below(std::min(left, 255U));
      const std::uint32_t kind = below(3);
      if (kind == 0) {
        const std::uint32_t a = below(most), b = bmp.bits == 4 ? below(most) : a;
        add(n, bmp.bits == 4 ? a << 4 | b : a);
        for (std::uint32_t i = 0; i < n; ++i) runs.indices.push_back(i % 2 == 0 ? a : b);
      } else if (kind == 1 && n > 2) {
        add(0, n);
        std::vector<std::uint32_t> listed;
        for (std::uint32_t i = 0; i < n; ++i) listed.push_back(below(most));
        runs.indices.insert(runs.indices.end(), listed.begin(), listed.end());
        if (bmp.bits == 4 && n % 2 == 1) listed.push_back(0);
        for (std::size_t i = 0; i < listed.size(); i += bmp.bits == 4 ? 2 : 1) {
          runs.codes.push_back(
              std::byte(bmp.bits == 4 ? listed[i] << 4 | listed[i + 1] : listed[i]));
        }
        if (runs.codes.size() % 2 == 1) runs.codes.push_back(std::byte{0});
      } else if (n < left) {  // skips to the right, or up as well
        const std::uint32_t up = y + 1 < bmp.height ? below(2) : 0;
        add(0, 2);
        add(n, up);
        runs.indices.insert(runs.indices.end(), n + up * bmp.width, 0);
        y += up;
      } else {
        continue;
      }
      left -= n;
    }
    runs.indices.insert(runs.indices.end(), left, 0);
    if (left > 0 || y + 1 < bmp.height) add(0, 0);
  }
  return runs;
}

TEST(DecodeBmp, RepeatedAndListedPixels) {
  const std::uint64_t seed = random_seed();
  CounterRandom random(seed, 0, 0);
  for (int round = 0; round < 2000; ++round) {
    Indexed bmp;
    bmp.bits = random.below(2) == 0 ? 4 : 8;
    bmp.compression = bmp.bits == 4 ? 2 : 1;
    bmp.width = 1 + static_cast<std::uint32_t>(random.below(random.below(4) == 0 ? 600 : 20));
    bmp.height = 1 + static_cast<std::uint32_t>(random.below(6));
    std::vector<std::byte> file = bmp.head(0);
    for (std::size_t i = bmp.palette_at(); i < file.size(); ++i) {
      file[i] = std::byte(random.below(256));
    }
    const Runs runs = drawn_runs(bmp, random);
    ASSERT_EQ(runs.indices.size(), bmp.width * bmp.height);
    file.insert(file.end(), runs.codes.begin(), runs.codes.end());
    const std::vector<std::byte> cut(file.begin(), file.end() - 1);
    file.insert(file.end(), {std::byte{0}, std::byte{1}});
    const Image image = decode_image(file, "x");
    for (std::size_t i = 0; i < runs.indices.size(); ++i) {
      const int x = static_cast<int>(i % bmp.width), y = static_cast<int>(i / bmp.width);
      const std::uint8_t* rgb = image.pixel(x, image.height() - 1 - y);
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t at = bmp.palette_at() + 4 * runs.indices[i] + 2 - c;
        ASSERT_EQ(rgb[c], std::to_integer<int>(file[at]))
            << bmp.bits << " bits, " << x << ", " << y << ", round " << round << " of seed "
            << seed;
      }
    }
    if (std::to_integer<int>(file[file.size() - 3]) != 0) {
      ASSERT_NE(refusal(cut), "");
    }
  }
}

// Where codes do not fit the rows, they are read as in Pillow; where pixels lack, the file is
// damaged.
TEST(DecodeBmp, RepeatedAndListedPixelsThatDoNotFit) {
  const auto read = [](const std::string& codes) {
    Indexed bmp{.width = 3, .height = 2, .colours = 4, .compression = 1};
    std::vector<std::byte> file = bmp.head(0);
    for (std::uint32_t i = 0; i < 4; ++i) set_number(file, 54 + 4 * i, '0' + i);  // blue
    for (const char c : codes) file.push_back(static_cast<std::byte>(c));
    const Image image = decode_image(file, "x");
    std::string seen;
    for (int i = 0; i < 6; ++i) {
      seen += static_cast<char>(image.pixel(i % 3, 1 - i / 3)[2]);
    }
    return seen;
  };
  const auto why = [&](const std::string& codes) {
    return message_of<InputError>([&] { read(codes); });
  };
  using namespace std::string_literals;
  EXPECT_EQ(read("\5\1\0\0\3\2"s), "111222") << "a run ends with its row";
  EXPECT_EQ(read("\0\4\1\2\3\1\0\0\0\1"s), "123100") << "listed pixels go on in the next row";
  EXPECT_EQ(read("\0\2\1\1\2\3"s), "000033");
  EXPECT_EQ(read("\0\0\3\1\0\0\3\2"s), "111222") << "no row begins that could end";
  EXPECT_EQ(read("\0\2\377\377"s), "000000") << "a skip ends with the picture";
  EXPECT_EQ(read("\0\3\1\2\3\0\0\0\3\1"s), "123111");
  for (const std::string& codes :
       {""s, "\3"s, "\3\1"s, "\3\1\3\1"s, "\3\1\0\0\0\1"s, "\0\2\1"s, "\0\6\1\2\3\1\2"s}) {
    EXPECT_TRUE(holds(why(codes), "x: corrupt BMP (its pixels end too early)")) << codes.size();
  }
}

// Masks that select whole bytes, in any order, are accepted both after the header and inside the
// longer header of later versions.
TEST(DecodeBmp, MasksThatAreBytes) {
  const auto masked = [](std::array<std::uint32_t, 3> masks, std::uint32_t info_bytes) {
    std::vector<std::byte> file = Bmp(32).file();
    const std::size_t more = info_bytes == 40 ? 12 : info_bytes - 40;
    file.insert(file.begin() + 54, more, std::byte{0});
    set_number(file, 10, static_cast<std::uint32_t>(54 + more));
    set_number(file, 14, info_bytes);
    set_number(file, 30, 3);
    for (std::size_t c = 0; c < 3; ++c) set_number(file, 54 + 4 * c, masks[c]);
    return file;
  };
  for (const std::uint32_t info_bytes : {40U, 56U, 108U, 124U}) {
    const Image usual = decode_image(masked({0xff0000, 0xff00, 0xff}, info_bytes), "x");
    const Image plain = decode_image(Bmp(32).file(), "x");
    EXPECT_EQ(hash(usual), hash(plain)) << info_bytes;
    // Red in the first byte, blue in the last.
    const Image other = decode_image(masked({0xff, 0xff0000, 0xff000000}, info_bytes), "x");
    EXPECT_EQ(other.pixel(1, 1)[0], 11);
    EXPECT_EQ(other.pixel(1, 1)[1], 11 + 100);
    EXPECT_EQ(other.pixel(1, 1)[2], 11 + 150);
  }
  for (const std::uint32_t mask : {0U, 0xf8U, 0x1ffU, 0xff0U, 0xffffffffU}) {
    EXPECT_TRUE(holds(refusal(masked({mask, 0xff00, 0xff}, 40)), "32 bits with compression 3"))
        << mask;
  }
  // Refused: masks where the pixels should begin, and a file that ends before its masks.
  EXPECT_NE(refusal(Bmp(32).set(30, 3).set(54, 0xff0000).set(58, 0xff00).set(62, 0xff).file()), "");
  EXPECT_NE(refusal(std::span(Bmp(32).set(30, 3).file()).first(60)), "");
}

TEST(DecodeBmp, HostileHeaders) {
  const auto bad = [](const Bmp& bmp) { return refusal(bmp.file()); };
  EXPECT_NE(bad(Bmp(24).set(18, 0)), "");
  EXPECT_NE(bad(Bmp(24).set(18, 0x7fffffff)), "");
  EXPECT_NE(bad(Bmp(24).set(22, 0x80000000)), "");
  EXPECT_NE(bad(Bmp(24).set(18, 60000).set(22, 60000)), "");
  EXPECT_NE(bad(Bmp(24).set(22, 3)), "");
  EXPECT_NE(bad(Bmp(24).set(10, 0xffffffff)), "");
  EXPECT_TRUE(holds(bad(Bmp(24).set(10, 53)), "the header runs into the pixels"));
  EXPECT_TRUE(holds(bad(Bmp(24).set(14, 16)), "a header of 16 bytes"));
  EXPECT_TRUE(holds(bad(Bmp(24).set(14, 12)), "BMP of 0 bits"));
  // An OS/2 header is shorter than ours, so that a whole file may be.
  std::vector<std::byte> small = Indexed{.bits = 24, .header = 12}.head(26);
  small.resize(26);
  small.insert(small.end(), {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{0}});
  EXPECT_EQ(decode_image(small, "x").pixel(0, 0)[0], 3);
  EXPECT_TRUE(holds(refusal(std::span(small).first(25)), "ends too early"));
  EXPECT_NE(bad(Bmp(24).set(14, 0xffffffff)), "");
  EXPECT_TRUE(holds(bad(Bmp(24).set(26, 16U << 16 | 1)), "16 bits"));
  EXPECT_TRUE(holds(bad(Bmp(24).set(30, 3)), "compression 3"));
  EXPECT_TRUE(holds(bad(Bmp(8).set(30, 2)), "8 bits with compression 2"));
  EXPECT_TRUE(holds(bad(Bmp(8).set(46, 257)), "256 colours"));
  EXPECT_TRUE(holds(bad(Bmp(8).set(46, 0xffffffff)), "256 colours"));
}

// What Pillow reads is no damage: pixels whose place is not stated, a palette that is shorter than
// an index or, as stated, longer than the room before the pixels.
TEST(DecodeBmp, OddHeadersAreNoDamage) {
  const std::string plain = hash(decode_image(Bmp(24).file(), "x"));
  EXPECT_EQ(hash(decode_image(Bmp(24).set(10, 0).file(), "x")), plain);
  const std::string indexed = hash(decode_image(Bmp(8).file(), "x"));
  for (const std::uint32_t place : {0U, 54U}) {
    EXPECT_EQ(hash(decode_image(Bmp(8).set(10, place).file(), "x")), indexed) << place;
  }
  for (const std::uint32_t colours : {0U, 3U, 256U}) {
    EXPECT_EQ(hash(decode_image(Bmp(8).set(46, colours).file(), "x")), indexed) << colours;
  }
  const Image beyond = decode_image(Bmp(8).set(46, 1).file(), "x");
  EXPECT_EQ(beyond.pixel(0, 0)[0], 2);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(beyond.pixel(1, 0)[c], 0);
}

}  // namespace
}  // namespace rk
