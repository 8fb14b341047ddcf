#include "weights/hdf5/file.h"

#include "engine/base/error.h"
#include "engine/base/packed_values.h"
#include "engine/base/text_of.h"
#include "tests/support/messages.h"
#include "tests/support/said_answers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/raw_hdf5.h"
#include "weights/hdf5/parser.h"
#include "weights/hdf5/questions.h"
#include "weights/tensor_files/tensor_file.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

namespace rk {
namespace {

const std::string kFixtures = RK_TEST_GOLDEN "/fixtures/";

std::vector<std::byte> sample() {
  Hdf5Writer writer;
  const std::vector<float> weights = {1.0F, -2.5F, 3.25F, 4.0F, 5.0F, 6.0F};
  writer.write("/weights/layer1.0.conv1.weight", {2, 3}, weights.data());
  const std::int64_t step = 9'007'199'254'740'993;  // 2^53 + 1, not exact in double
  writer.write("/run/step", {}, &step);
  const std::vector<double> fine = {0.1, 1e300};
  writer.write("fine", {2}, fine.data());
  const std::uint8_t bytes[] = {0, 255};
  writer.write("/bytes", {2}, bytes);
  writer.write_text("/paths", {"a b.jpg", "", "ü\nx"});
  writer.write<float>("/empty", {0, 4}, nullptr);
  writer.set_attribute("/", "arch", "resnet18");
  writer.set_attribute("/", "arch", "resnet50");  // replaces
  writer.set_attribute("/run", "seed", std::int64_t{7});
  writer.set_attribute("/new/group", "scale", 0.5);
  return writer.finish();
}

TEST(Hdf5File, ReadsBackWhatWasWritten) {
  const Hdf5Reader reader(sample(), "sample");
  EXPECT_EQ(reader.read<float>("/weights/layer1.0.conv1.weight"),
            (std::vector<float>{1.0F, -2.5F, 3.25F, 4.0F, 5.0F, 6.0F}));
  EXPECT_EQ(reader.read<std::int64_t>("/run/step").at(0), 9'007'199'254'740'993);
  EXPECT_TRUE(reader.info("/run/step").dims.empty());
  EXPECT_EQ(reader.read<double>("fine"), (std::vector<double>{0.1, 1e300}));
  EXPECT_EQ(reader.read<std::uint8_t>("/bytes"), (std::vector<std::uint8_t>{0, 255}));
  EXPECT_EQ(reader.read_text("/paths"), (std::vector<std::string>{"a b.jpg", "", "ü\nx"}));
  EXPECT_EQ(reader.info("/empty").dims, (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(reader.read<float>("/empty").empty());
  EXPECT_EQ(reader.text_attribute("/", "arch"), "resnet50");
  EXPECT_EQ(reader.integer_attribute("/run", "seed"), 7);
  EXPECT_EQ(reader.number_attribute("/new/group", "scale")->at(0), 0.5);
  EXPECT_FALSE(reader.text_attribute("/", "missing").has_value());
  EXPECT_EQ(reader.children("/"),
            (std::vector<std::string>{"bytes", "empty", "fine", "new", "paths", "run", "weights"}));
  EXPECT_EQ(reader.datasets("/weights"),
            (std::vector<std::string>{"/weights/layer1.0.conv1.weight"}));
  EXPECT_TRUE(reader.has("/weights"));
  EXPECT_FALSE(reader.has("/weights/layer1"));
}

TEST(Hdf5File, EqualContentsAreEqualBytes) { EXPECT_EQ(sample(), sample()); }

// As the library finds it in the file of `image`.
struct OpenImage {
  explicit OpenImage(std::vector<std::byte> image) {
    folder.write("image.h5", image);
    file = H5Fopen(folder.in("image.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  }
  ~OpenImage() { H5Fclose(file); }

  const TemporaryFolder folder;
  hid_t file = H5I_INVALID_HID;
};

// The library's times are of whole seconds.
TEST(Hdf5File, NothingSaysWhenItWasWritten) {
  const std::vector<std::byte> image = sample();
  for (const std::time_t written = std::time(nullptr); std::time(nullptr) == written;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(sample(), image);
}

TEST(Hdf5File, TextsAreSaidToBeUtf8) {
  const OpenImage image(sample());
  const hid_t paths = H5Dopen2(image.file, "/paths", H5P_DEFAULT);
  const hid_t arch = H5Aopen(image.file, "arch", H5P_DEFAULT);
  const hid_t types[] = {H5Dget_type(paths), H5Aget_type(arch)};
  for (const hid_t type : types) {
    EXPECT_EQ(H5Tget_cset(type), H5T_CSET_UTF8);
    EXPECT_GT(H5Tis_variable_str(type), 0);
    H5Tclose(type);
  }
  H5Aclose(arch);
  H5Dclose(paths);
}

TEST(Hdf5File, TwoImagesOfOneNameStayApart) {
  Hdf5Writer one, two;
  const float a = 1.0F, b = 2.0F;
  one.write("/x", {}, &a);
  two.write("/x", {}, &b);
  const Hdf5Reader first(one.finish(), "same"), second(two.finish(), "same");
  EXPECT_EQ(first.read<float>("/x").at(0), 1.0F);
  EXPECT_EQ(second.read<float>("/x").at(0), 2.0F);
}

TEST(Hdf5File, NumbersConvertButNeverSilentlyLoseTheirMeaning) {
  const Hdf5Reader reader(sample(), "sample");
  EXPECT_EQ(reader.read<double>("/bytes"), (std::vector<double>{0.0, 255.0}));
  EXPECT_EQ(reader.read<float>("fine").at(0), 0.1F);
  EXPECT_TRUE(
      holds(message_of<InputError>([&] { reader.read<std::int64_t>("fine"); }), "floating-point"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { reader.read<float>("/paths"); }), "text"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { reader.read_text("fine"); }), "numbers"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { reader.read<std::uint8_t>("/run/step"); }),
                    "range of 8 bits"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { reader.read<float>("/run"); }), "is a group"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { reader.read<float>("/nothing"); }),
                    "no data set /nothing"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { reader.integer_attribute("/", "arch"); }),
                    "not an integer"));
  float out[6];
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      reader.read_into("/weights/layer1.0.conv1.weight", {3, 2}, out);
                    }),
                    "[2, 3] where [3, 2] is expected"));
}

TEST(Hdf5File, HostileFilesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"hx_bomb.h5", "more than 1 GiB"},
      {"hx_external.h5", "link to elsewhere"},
      {"hx_extstorage.h5", "external storage"},
      {"hx_vds.h5", "virtual data set"},
  };
  for (const auto& [file, words] : cases) {
    const std::string path = kFixtures + file;
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
    const std::string message = message_of<InputError>([&] { Hdf5Reader reader(path); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    EXPECT_TRUE(holds(message, words));
  }
}

// Messages of later versions, as h5py writes them with libver='latest', are no damage.
TEST(Hdf5File, MessagesOfNewerVersionsAreNamed) {
  std::string text(text_of(sample()));
  // The layout of a data set: the message's type and size, flags, and the version 3.
  const std::size_t layout = text.find(std::string("\x08\0\x18\0\0\0\0\0\3", 9));
  ASSERT_NE(layout, std::string::npos);
  text[layout + 8] = 9;
  const TemporaryFolder folder;
  folder.write("new.h5", text);
  EXPECT_TRUE(holds(
      message_of<InputError>([&] { Hdf5Reader{folder.in("new.h5")}; }),
      "(bad version number for layout message): written by a newer HDF5, or damaged; write it "
      "without libver='latest'"));
}

// A data set may be as large as its file: the proxies of a product search take more than 1 GiB.
TEST(Hdf5File, DataSetsAreAsLargeAsTheirFile) {
  constexpr hsize_t kCount = (hsize_t{1} << 28) + 1;  // one float more than 1 GiB
  const TemporaryFolder temporary;
  const std::string path = made_hdf5(temporary.in("large.h5"), [](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);  // a sparse file: takes no disk
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    write_set(file, "x", H5T_IEEE_F32LE, {kCount}, nullptr, creation);
    H5Pclose(creation);
  });
  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.info("/x").dims, (std::vector<std::int64_t>{std::int64_t{kCount}}));
}

// The reader must neither look for nor load filters that are libraries of their own.
TEST(Hdf5File, FiltersOfPluginsAreRefused) {
  const TemporaryFolder temporary;
  for (const H5Z_filter_t filter : {32000, 32015, H5Z_FILTER_FLETCHER32, H5Z_FILTER_NBIT}) {
    const std::string path = made_hdf5(temporary.in(fmt::format("{}.h5", filter)), [&](hid_t file) {
      const hsize_t rows = 8;
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_chunk(creation, 1, &rows);
      H5Pset_filter(creation, filter, H5Z_FLAG_OPTIONAL, 0, nullptr);
      write_set(file, "w", H5T_IEEE_F32LE, {rows}, nullptr, creation);
      H5Pclose(creation);
    });
    const std::string message = message_of<InputError>([&] { Hdf5Reader reader(path); });
    EXPECT_TRUE(holds(message, "filter")) << filter << ": " << message;
  }
}

TEST(Hdf5File, AShapeWithoutElementsIsNotMultipliedOut) {
  const hsize_t most = 2147483647;
  const TemporaryFolder folder;
  const std::string path = made_hdf5(folder.in("empty.h5"), [&](hid_t file) {
    write_set(file, "x", H5T_IEEE_F32LE, {most, most, most, 0}, nullptr);
  });
  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.info("/x").dims.size(), 4U);
  EXPECT_EQ(reader.info("/x").elements(), 0);
  EXPECT_TRUE(reader.read<float>("/x").empty());
  EXPECT_EQ(read_tensor_file(path).tensors.at(0).elements(), 0);
}

// Keras writes bfloat16 as opaque elements of 2 bytes, which only an attribute tells from others.
TEST(Hdf5File, ElementsWithoutATypeAreRefused) {
  const TemporaryFolder folder;
  const std::string path = made_hdf5(folder.in("opaque.h5"), [](hid_t file) {
    const std::array<std::uint16_t, 8> values{};
    const hid_t type = H5Tcreate(H5T_OPAQUE, 2);
    write_set(file, "w", type, {8}, values.data());
    H5Tclose(type);
  });
  const Hdf5Reader reader(path);
  EXPECT_EQ(
      message_of<InputError>([&] { reader.info("/w"); }),
      path + ": /w holds bytes that say no type, as Keras writes bfloat16; save it in float32");
}

// What is not read must not keep a program from reading what lies beside it.
TEST(Hdf5File, WhatIsNotReadIsSaidOfEachDataSet) {
  const TemporaryFolder folder;
  const std::string path = made_hdf5(folder.in("kinds.h5"), [&](hid_t file) {
    const std::array<double, 2> values = {1, 2};
    write_set(file, "x", H5T_IEEE_F64LE, {2}, values.data());
    const hid_t colours = H5Tenum_create(H5T_NATIVE_INT8);
    const std::int8_t red = 0, blue = 1;
    H5Tenum_insert(colours, "RED", &red);
    H5Tenum_insert(colours, "TRUE", &blue);
    write_set(file, "enum", colours, {2}, values.data());
    const hid_t pair = H5Tcreate(H5T_COMPOUND, 16);
    H5Tinsert(pair, "a", 0, H5T_NATIVE_DOUBLE);
    H5Tinsert(pair, "b", 8, H5T_NATIVE_DOUBLE);
    write_set(file, "compound", pair, {1}, values.data());
    write_set(file, "rank5", H5T_IEEE_F64LE, {1, 1, 1, 1, 2}, values.data());
    write_set(file, "long", H5T_NATIVE_LDOUBLE, {1}, nullptr);
    const hid_t nothing = H5Screate(H5S_NULL);
    H5Dclose(
        H5Dcreate2(file, "empty", H5T_IEEE_F32LE, nothing, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(nothing);
    H5Tclose(pair);
    H5Tclose(colours);
  });
  const Hdf5Reader reader(path);
  for (const auto& [name, words] :
       {std::pair<std::string, std::string>{"/enum", "holds an enumeration; write its integers"},
        {"/compound", "holds neither numbers nor text; convert it"},
        {"/rank5", "has 5 dimensions; at most 4 are read"},
        {"/long", "has elements of more than 8 bytes; convert it to float32"},
        {"/empty", "has no extent; write it again with its values"}}) {
    EXPECT_EQ(reader.unread(name), name + " " + words);
    const std::string refusal = path + ": " + name + " " + words;
    EXPECT_EQ(message_of<InputError>([&, &set = name] { reader.info(set); }), refusal);
    EXPECT_EQ(message_of<InputError>([&, &set = name] { reader.read<float>(set); }), refusal);
    EXPECT_EQ(message_of<InputError>([&, &set = name] { reader.read_text(set); }), refusal);
    // The process that parses the file does not read it either, whatever it is asked.
    Hdf5Parser parser(path);
    std::array<std::byte, 64> out{};
    const auto read_numbers = [&, &set = name] {
      parser.read_numbers(set, Hdf5Type::kFloat, {}, out);
    };
    EXPECT_EQ(message_of<InputError>(read_numbers), refusal);
    EXPECT_EQ(message_of<InputError>([&, &set = name] { parser.read_texts(set, 0); }), refusal);
  }
  EXPECT_EQ(reader.unread("/x"), "");
  EXPECT_EQ(reader.read<float>("/x"), (std::vector<float>{1, 2}));
}

// numpy's bool as h5py writes it, and as other machines might: 0 and 1 of any integer.
TEST(Hdf5File, BooleansAreIntegers) {
  const TemporaryFolder folder;
  const std::string path = made_hdf5(folder.in("booleans.h5"), [&](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const std::array<hsize_t, 2> chunk = {3, 2};
    H5Pset_chunk(creation, 2, chunk.data());
    H5Pset_deflate(creation, 1);
    const auto write = [&](const char* name, hid_t base, auto no, auto yes, hid_t how) {
      const hid_t type = H5Tenum_create(base);
      H5Tenum_insert(type, "FALSE", &no);
      H5Tenum_insert(type, "TRUE", &yes);
      const std::array values = {no, yes, yes, no, yes, no, no, no, yes, yes};
      write_set(file, name, type, {5, 2}, values.data(), how);
      H5Tclose(type);
    };
    write("int8", H5T_STD_I8LE, std::int8_t{0}, std::int8_t{1}, H5P_DEFAULT);
    write("deflated", H5T_STD_I8LE, std::int8_t{0}, std::int8_t{1}, creation);
    const std::uint32_t turned = std::uint32_t{1} << 24;  // 1 with its bytes the other way round
    write("big_endian", H5T_STD_U32BE, std::uint32_t{0}, turned, H5P_DEFAULT);
    H5Pclose(creation);
  });
  const std::vector<std::int64_t> wanted = {0, 1, 1, 0, 1, 0, 0, 0, 1, 1};
  const Hdf5Reader reader(path);
  for (const char* name : {"/int8", "/deflated", "/big_endian"}) {
    EXPECT_EQ(reader.unread(name), "");
    EXPECT_EQ(reader.info(name).kind, Hdf5Reader::Kind::kInteger) << name;
    EXPECT_EQ(reader.read<std::int64_t>(name), wanted) << name;
    EXPECT_EQ(reader.read<float>(name), (std::vector<float>(wanted.begin(), wanted.end())));
    EXPECT_EQ(reader.read<std::uint8_t>(name),
              (std::vector<std::uint8_t>(wanted.begin(), wanted.end())));
  }
}

// Every bfloat16, as Keras writes them: opaque, and an attribute says what they are.
TEST(Hdf5File, OpaqueElementsMayBeBfloat16) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> bits(1 << 16);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  const std::string path = made_hdf5(folder.in("bfloat16.h5"), [&](hid_t file) {
    const hid_t type = H5Tcreate(H5T_OPAQUE, 2), creation = H5Pcreate(H5P_DATASET_CREATE);
    const std::array<hsize_t, 2> chunk = {100, 64};
    H5Pset_chunk(creation, 2, chunk.data());
    H5Pset_deflate(creation, 1);
    const std::vector<hsize_t> sides = {1 << 8, 1 << 8};
    write_set(file, "contiguous", type, sides, bits.data());
    write_set(file, "deflated", type, sides, bits.data(), creation);
    write_set(file, "unwritten", type, {100, 64}, nullptr, creation);
    write_set(file, "other", type, sides, bits.data());
    const hid_t scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, H5T_VARIABLE);
    for (const auto& [name, dtype] : {std::pair<const char*, const char*>{"contiguous", "bfloat16"},
                                      {"deflated", "bfloat16"},
                                      {"unwritten", "bfloat16"},
                                      {"other", "float16"}}) {
      const hid_t attribute = H5Acreate_by_name(file, name, "dtype", text, scalar, H5P_DEFAULT,
                                                H5P_DEFAULT, H5P_DEFAULT);
      EXPECT_GE(H5Awrite(attribute, text, &dtype), 0);
      H5Aclose(attribute);
    }
    H5Tclose(text);
    H5Sclose(scalar);
    H5Pclose(creation);
    H5Tclose(type);
  });
  const Hdf5Reader reader(path);
  for (const char* name : {"/contiguous", "/deflated"}) {
    EXPECT_EQ(reader.info(name).kind, Hdf5Reader::Kind::kFloat);
    EXPECT_EQ(reader.info(name).digits, 8);
    const std::vector<float> values = reader.read<float>(name);
    ASSERT_EQ(values.size(), bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const auto wanted = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(values[i])) << name << ' ' << i;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(wanted))
            << name << ' ' << i;
      }
    }
    EXPECT_EQ(reader.read<double>(name)[0x4049], 3.140625);
    EXPECT_TRUE(holds(message_of<InputError>([&] { reader.read<std::int64_t>(name); }),
                      "holds floating-point numbers where integers are expected"));
  }
  EXPECT_EQ(reader.read<float>("/unwritten"), std::vector<float>(6400, 0.0F));
  EXPECT_TRUE(holds(reader.unread("/other"), "holds bytes that say no type"));
}

TEST(Hdf5File, FilesThatAreNotHdf5AreNamed) {
  const TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return (folder / name).string();
  };
  EXPECT_TRUE(holds(message_of<InputError>([&] { Hdf5Reader r(write("empty", "")); }), "is empty"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { Hdf5Reader r(write("text", "hello\n")); }),
                    "not an HDF5 file"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { Hdf5Reader r((folder / "none").string()); }),
                    "No such file"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { Hdf5Reader r(folder.string()); }), "directory"));
  const std::vector<std::byte> whole = sample();
  const std::string half(text_of(whole).substr(0, whole.size() / 2));
  EXPECT_TRUE(
      holds(message_of<InputError>([&] { Hdf5Reader r(write("half", half)); }), "truncated"));
}

// Makes a file with one deflated data set of `rows` values of `type`. Writes `values`, or nothing
// if null: then a few hundred bytes claim to hold `rows` values.
std::string packed_file(const std::string& path, const char* name, hid_t type, hsize_t rows,
                        hsize_t chunk, const void* values = nullptr) {
  return made_hdf5(path, [&](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_deflate(creation, 9);
    write_set(file, name, type, {rows}, values, creation);
    H5Pclose(creation);
  });
}

TEST(Hdf5File, ClaimsFarBeyondWhatIsStoredAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.in("lazy.h5");
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      Hdf5Reader r(packed_file(path, "w", H5T_IEEE_F32LE, 1 << 20, 1 << 10));
                    }),
                    "exhaust memory"));
}

// Equal labels deflate 1017 to 1, deflate's best ratio, which must not be taken for an attack.
TEST(Hdf5File, EqualLabelsAreReadHoweverSmallTheyAreStored) {
  const TemporaryFolder folder;
  const std::string path = folder.in("labels.h5");
  const std::vector<std::int64_t> labels(200'000, -1);
  packed_file(path, "labels", H5T_STD_I64LE, labels.size(), labels.size(), labels.data());
  EXPECT_EQ(Hdf5Reader(path).read<std::int64_t>("/labels"), labels);
}

// A small data set that takes no space in the file is allowed: all its values are the fill value.
TEST(Hdf5File, ASmallDataSetThatWasNeverWrittenIsItsFillValue) {
  const TemporaryFolder folder;
  const hsize_t rows = 1000, chunk = 300;
  const float seven = 7;
  const std::string path = made_hdf5(folder.in("fill.h5"), [&](hid_t file) {
    const hid_t space = H5Screate_simple(1, &rows, nullptr);
    for (const std::string name : {"contiguous", "chunked", "packed"}) {
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_fill_value(creation, H5T_NATIVE_FLOAT, &seven);
      if (name != "contiguous") H5Pset_chunk(creation, 1, &chunk);
      if (name == "packed") H5Pset_deflate(creation, 9);
      const hid_t set =
          H5Dcreate2(file, name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
      EXPECT_EQ(H5Dget_storage_size(set), 0U) << name;
      H5Dclose(set);
      H5Pclose(creation);
    }
    H5Sclose(space);
  });
  const Hdf5Reader reader(path);
  for (const std::string name : {"contiguous", "chunked", "packed"}) {
    EXPECT_EQ(reader.read<float>(name), std::vector<float>(rows, seven)) << name;
  }
}

// One data set under 3000 names in a group with a long name: a file of 300 KB whose paths take
// 90 MB.
TEST(Hdf5File, PathsFarBeyondTheFileAreRefused) {
  const TemporaryFolder folder;
  const std::string path = made_hdf5(folder.in("names.h5"), [&](hid_t file) {
    const hid_t group =
        H5Gcreate2(file, std::string(30'000, 'g').c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t set =
        H5Dcreate2(group, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 3000; ++i) {
      ASSERT_GE(
          H5Lcreate_hard(group, "x", group, std::to_string(i).c_str(), H5P_DEFAULT, H5P_DEFAULT),
          0);
    }
    H5Dclose(set);
    H5Sclose(space);
    H5Gclose(group);
  });
  EXPECT_LT(std::filesystem::file_size(path), 1'000'000U);
  EXPECT_TRUE(holds(message_of<InputError>([&] { Hdf5Reader r(path); }), "take more than 64 MiB"));
}

// A group with too many names is as it should be, and no damage is spoken of.
TEST(Hdf5File, TooManyObjectsOfOneGroupAreRefusedForThat) {
  const TemporaryFolder folder;
  const std::string path = made_hdf5(folder.in("many.h5"), [&](hid_t file) {
    const hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 100'001; ++i) {
      ASSERT_GE(
          H5Lcreate_hard(file, "g", group, std::to_string(i).c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
    }
    H5Gclose(group);
  });
  EXPECT_TRUE(holds(message_of<InputError>([&] { Hdf5Reader r(path); }),
                    "many.h5: more than 100000 objects; split the file"));
}

// Nested groups whose names are each short enough but whose path is not.
TEST(Hdf5File, APathThatIsTooLongToAskForIsRefused) {
  const TemporaryFolder folder;
  std::string name;
  for (int i = 0; i < 12; ++i) name += "/" + std::string(30'000, 'g');
  const std::string path = made_hdf5(folder.in("deep.h5"), [&](hid_t file) {
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t set =
        H5Dcreate2(file, name.c_str(), H5T_IEEE_F32LE, space, links, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(set, 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(links);
  });
  const Hdf5Reader reader(path);
  EXPECT_TRUE(
      holds(message_of<InputError>([&] { reader.read<float>(name); }), "takes more than 256 KiB"));
}

// The refusal of answers from a hostile parser: its file has one data set, /x, whose shape and
// values are what the arguments say.
std::string refusal_of_liar(const std::function<void(PackedWriter&)>& shape,
                            const std::function<std::size_t(std::span<std::byte>)>& values) {
  const auto say = [&](std::span<const std::byte> question) {
    const auto asked = static_cast<Hdf5Question>(PackedReader(question).number());
    std::vector<std::byte> slot(kHdf5SlotBytes);
    PackedWriter out(slot);
    std::size_t said = 0;
    if (asked == Hdf5Question::kOpen) {
      for (int i = 0; i < 5; ++i) out.number(0);
    } else if (asked == Hdf5Question::kObjects) {
      out.number(1);
      out.text("/x");
      out.number(1);
    } else if (asked == Hdf5Question::kInfo) {
      shape(out);
    } else {
      said = values(slot);
    }
    slot.resize(std::max(said, out.bytes()));
    return slot;
  };
  return message_of<InputError>([&] {
    const Hdf5Reader reader("liar", std::make_unique<SaidAnswers>(say));
    if (reader.info("/x").kind == Hdf5Reader::Kind::kText) {
      reader.read_text("/x");
    } else {
      reader.read<float>("/x");
    }
  });
}

TEST(Hdf5File, NothingThatTheParserSaysIsBelieved) {
  const auto numbers = [](std::initializer_list<std::uint64_t> all) {
    return [list = std::vector<std::uint64_t>(all)](PackedWriter& out) {
      for (const std::uint64_t each : list) out.number(each);
    };
  };
  const auto nothing = [](std::span<std::byte>) { return std::size_t{0}; };
  const auto all = [](std::span<std::byte> slot) { return slot.size(); };
  const std::string no_sense = "answer that makes no sense";
  // Numbers: kind, digits, rank, sides, sides of the pieces; or 3 and a text.
  EXPECT_TRUE(holds(refusal_of_liar(numbers({4, 24, 0}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({3, 24, 0}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({3, 0}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 65, 1, 8, 8}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 5}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1, 1ULL << 40, 1}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1, ~0ULL, 1}), nothing), no_sense));
  EXPECT_TRUE(holds(
      refusal_of_liar(numbers({0, 24, 4, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1, 1, 1, 1}), nothing),
      no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1, 8, 0}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1, 8, 9}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1, 1 << 29, 1}), nothing), "are the limit"));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1, 8, 8}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({0, 24, 1, 8, 8}), all), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({2, 24, 1, 8, 8}), nothing), no_sense));
  EXPECT_TRUE(holds(refusal_of_liar(numbers({2, 24, 1, 8, 8}),
                                    [](std::span<std::byte> slot) {
                                      PackedWriter out(slot);
                                      out.number(1);
                                      out.number(~0ULL);  // the length of a text
                                      return out.bytes();
                                    }),
                    no_sense));
}

// If the reader asked twice, a hostile parser could give a second answer that is never checked.
TEST(Hdf5File, AShapeIsAskedForOnce) {
  int asked = 0;
  const auto say = [&](std::span<const std::byte> question) {
    std::vector<std::byte> slot(256);
    PackedWriter out(slot);
    switch (static_cast<Hdf5Question>(PackedReader(question).number())) {
      case Hdf5Question::kOpen:
        for (int i = 0; i < 5; ++i) out.number(0);
        break;
      case Hdf5Question::kObjects:
        out.number(1);
        out.text("/x");
        out.number(1);
        break;
      case Hdf5Question::kInfo:
        ++asked;
        // Kind, digits, rank, side, side of the pieces.
        for (const int each : {0, 53, 1, asked, asked})
          out.number(static_cast<std::uint64_t>(each));
        break;
      default:
        for (int i = 0; i < asked; ++i) out.number(0);  // as many doubles
    }
    slot.resize(out.bytes());
    return slot;
  };
  const Hdf5Reader reader("changing", std::make_unique<SaidAnswers>(say));
  EXPECT_EQ(reader.info("/x").dims, std::vector<std::int64_t>{1});
  EXPECT_EQ(reader.info("x").dims, std::vector<std::int64_t>{1});
  EXPECT_EQ(reader.read<double>("/x").size(), 1U);
}

}  // namespace
}  // namespace rk
