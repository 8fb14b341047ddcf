#include "retrieval/files/read_rows.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/labels.h"
#include "retrieval/files/stored_array.h"
#include "tests/retrieval/npy_bytes.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/torch_writer.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/file.h"
#include "weights/tensor_files/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace rk {
namespace {

const std::string kArrays = RK_TEST_GOLDEN "/arrays/";
const std::vector<std::int64_t> kLabels = {0, 0, 1, 1, 2, 2};

// The rows of tests/golden/arrays: all values are exact in float16.
std::vector<float> golden_rows() {
  std::vector<float> out;
  for (int i = 0; i < 6; ++i) {
    const auto x = static_cast<float>(i);
    out.insert(out.end(), {x, x + 0.5F, -x});
  }
  return out;
}

std::vector<float> values_of(const EmbeddingSet& set) {
  return {set.values().begin(), set.values().end()};
}

std::string why(const RowsToRead& what) {
  return message_of<InputError>([&] { read_rows(what); });
}

TEST(ReadRows, EveryWayOfStoringGivesTheSameRows) {
  for (const char* name : {"c_order.npy", "fortran.npy", "float16.npy", "float64_big_endian.npy",
                           "version2.npy", "version3.npy", "named.npz", "compressed.npz",
                           "positional.npz", "rows.safetensors", "two_matrices.npz:two"}) {
    SCOPED_TRACE(name);
    const bool bare = std::string(name).ends_with(".npy");
    const RowsRead read =
        read_rows({kArrays + name, bare ? kArrays + "labels_int64.npy" : "", false});
    EXPECT_EQ(read.set.dim, 3);
    EXPECT_EQ(values_of(read.set), golden_rows());
    EXPECT_EQ(read.set.labels, kLabels);
  }
}

TEST(ReadRows, SaysWhatItFound) {
  const RowsRead read = read_rows({kArrays + "fortran.npy", kArrays + "labels_names.npy", false});
  EXPECT_EQ(read.format, "npy");
  EXPECT_EQ(read.dtype, "float32");
  EXPECT_TRUE(read.column_major);
  EXPECT_TRUE(holds(read.labels, "labels_names.npy, names"));
  const RowsRead other = read_rows({kArrays + "compressed.npz", "", false});
  EXPECT_EQ(other.dtype, "float16");
  EXPECT_EQ(other.labels, "'y', names");
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> ones(4, 0x3F80);
  const std::vector<std::int64_t> classes = {3, 4};
  const std::vector<std::byte> bytes =
      write_safetensors({{"x", ElementType::kBf16, {2, 2}, std::as_bytes(std::span(ones))},
                         {"y", ElementType::kI64, {2}, std::as_bytes(std::span(classes))}},
                        {});
  folder.write("e.safetensors", bytes);
  const RowsRead brain = read_rows({folder.path() / "e.safetensors", "", false});
  EXPECT_EQ(brain.dtype, "bfloat16");
  EXPECT_EQ(values_of(brain.set), (std::vector<float>(4, 1)));
}

TEST(ReadRows, NamesAreFoundInCapitalsToo) {
  const TemporaryFolder folder;
  folder.write("e.npz", zip_of({{"Embeddings.npy", npy_rows({1, 2, 3, 4}, 2, 2)},
                                {"other.npy", npy_rows({5, 6, 7, 8}, 2, 2)},
                                {"LABELS.npy", npy_labels({3, 4})}}));
  const EmbeddingSet set = read_rows({folder.path() / "e.npz", "", false}).set;
  EXPECT_EQ(values_of(set), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(set.labels, (std::vector<std::int64_t>{3, 4}));
}

TEST(ReadRows, AColonMayBelongToAFoldersOrAFilesName) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "a:b");
  const auto at = [&](const std::string& name) { return folder.in(name); };
  folder.write("a", "");
  folder.write("a:b/e.npz", "");
  folder.write("a:b/e.npz:y", "");
  const auto split = [&](const std::string& name) {
    const FileAndName place = file_and_name(at(name));
    return std::pair(place.file, place.name);
  };
  EXPECT_EQ(split("a:b/e.npz"), std::pair(at("a:b/e.npz"), std::string()));
  EXPECT_EQ(split("a:b/e.npz:x"), std::pair(at("a:b/e.npz"), std::string("x")));
  EXPECT_EQ(split("a:b/e.npz:y"), std::pair(at("a:b/e.npz:y"), std::string()));
  EXPECT_EQ(split("a:b/none:x"), std::pair(at("a:b/none:x"), std::string()));
}

TEST(ReadRows, ManyArraysAreNotAllListed) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.npz");
  ArchiveMembers members;
  std::string eight;
  for (int i = 0; i < 8; ++i) {
    members.push_back({fmt::format("a{}.npy", i), npy_labels({1, 2})});
    eight += fmt::format("{}'a{}' (int64 [2])", i > 0 ? ", " : "it holds ", i);
  }
  folder.write("e.npz", zip_of(members));
  EXPECT_EQ(open_arrays(path).contents(), eight);
  members.push_back({"a8.npy", npy_labels({1, 2})});
  folder.write("e.npz", zip_of(members));
  EXPECT_EQ(open_arrays(path).contents(), eight + ", ...");
}

// More than the 2^20 numbers that are converted at a time.
TEST(ReadRows, RowsOfManyBlocksAreInTheirPlaces) {
  const TemporaryFolder folder;
  constexpr std::int64_t kRows = 2100, kDim = 1000;
  std::vector<double> values(static_cast<std::size_t>(kRows * kDim));
  std::iota(values.begin(), values.end(), 0.0);
  folder.write("e.npy", npy_bytes(npy_header("<f8", fmt::format("({}, {})", kRows, kDim)),
                                  raw_bytes(values)));
  const ArrayFile file = open_arrays(folder.in("e.npy"));
  EXPECT_EQ(rows_as_float32(file.named("")), std::vector<float>(values.begin(), values.end()));
}

TEST(ReadRows, TextsAreWrittenInUtf8) {
  const TemporaryFolder folder;
  const auto text = [&](const std::vector<std::uint32_t>& units) {
    folder.write("t.npy", npy_bytes(npy_header(fmt::format("<U{}", units.size()), "(1,)"),
                                    raw_bytes(units)));
    return text_at(open_arrays(folder.in("t.npy")).named(""), 0);
  };
  EXPECT_EQ(text({0x7F, 0x80, 0x7FF, 0x800}), "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80");
  EXPECT_EQ(text({0xD7FF, 0xE000, 0xFFFF}), "\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF");
  EXPECT_EQ(text({0x10000, 0x10FFFF}), "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
  // Zeros at the end fill up the width, others belong to the text.
  EXPECT_EQ(text({'a', 0, 0, 'b', 'c', 0}), std::string("a\0\0bc", 5));
  for (const std::uint32_t code : {0xD800U, 0xDFFFU, 0x110000U}) {
    EXPECT_EQ(message_of<InputError>([&] {
                text({'a', code});
              }),
              fmt::format("holds U+{:X}, which is no character; save it again", code));
  }
}

TEST(ReadRows, PlainRowsAreMappedAndOthersRead) {
  const std::string labels = kArrays + "labels_int64.npy";
  EXPECT_TRUE(read_rows({kArrays + "c_order.npy", labels, false}).set.mapped);
  EXPECT_TRUE(read_rows({kArrays + "c_order.npy", labels, false}).set.embeddings.empty());
  EXPECT_FALSE(read_rows({kArrays + "float16.npy", labels, false}).set.mapped);
}

TEST(ReadRows, LabelsOfEveryKind) {
  const auto labels = [](const std::string& name) {
    return read_rows({kArrays + "c_order.npy", kArrays + name, false}).set;
  };
  for (const char* name : {"labels_uint8.npy", "labels_float.npy", "named.npz", "positional.npz",
                           "named.npz:labels", "rows.safetensors"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(labels(name).labels, kLabels);
    EXPECT_TRUE(labels(name).classes.empty());
  }
  EXPECT_EQ(labels("labels_bytes.npy").classes, (std::vector<std::string>{"a", "b", "c"}));
  // The characters take one, two, three and four bytes in UTF-8.
  EXPECT_EQ(labels("labels_names.npy").classes,
            (std::vector<std::string>{"a\u00e4\u65e5\U0001f600", "b", "c"}));
  EXPECT_EQ(labels("labels_names.npy").labels, kLabels);
}

// Labels in HDF5: numbers are read at once, names if the file is given for the labels, too.
TEST(ReadRows, LabelsOfEveryKindInHdf5) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  const std::vector<float> rows = {1, 0, 0, 1, 1, 1};
  const auto labels = [&](const std::function<void(Hdf5Writer&)>& write) {
    Hdf5Writer file;
    file.write("/embeddings", {3, 2}, rows.data());
    write(file);
    write_atomic(path, file.finish());
    const EmbeddingSet set = read_rows({path, path}).set;
    EXPECT_EQ(values_of(set), rows);
    return std::pair(set.labels, set.classes);
  };
  using Numbers = std::vector<std::int64_t>;
  using Names = std::vector<std::string>;
  const std::vector<float> whole = {7, -2, 7}, broken = {1, 1.5F, 2};
  EXPECT_EQ(labels([&](Hdf5Writer& file) { file.write("/labels", {3}, whole.data()); }),
            std::pair(Numbers({7, -2, 7}), Names()));
  EXPECT_EQ(read_rows({path, ""}).set.labels, Numbers({7, -2, 7}));
  EXPECT_EQ(labels([&](Hdf5Writer& file) {
              file.write_text("/labels", {"b", "a", "b"});
            }),
            std::pair(Numbers({0, 1, 0}), Names({"b", "a"})));
  EXPECT_EQ(why({path, ""}), path + ": /labels does not hold integers but names; with --labels " +
                                 path + " they are taken");
  const std::vector<std::int64_t> three = {1, 2, 3};
  EXPECT_EQ(labels([&](Hdf5Writer& file) {
              file.write("/labels", {3, 1}, three.data());
            }).first,
            three);
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      labels([&](Hdf5Writer& file) {
                        file.write("/labels", {2, 3}, std::vector<std::int64_t>(6).data());
                      });
                    }),
                    "/labels: is [2, 3], not one label a row; give [3]"));
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      labels([&](Hdf5Writer& file) { file.write("/labels", {3}, broken.data()); });
                    }),
                    "/labels: element 1 is 1.5, no whole number; give integers, or names"));
}

// From 2^digits on, other whole numbers are rounded to a label, which then means several classes.
TEST(ReadRows, LabelsAreRefusedWhereTheirTypeRoundsThem) {
  const TemporaryFolder folder;
  const std::string path = folder.in("labels");
  const auto said = [&](const std::string& bytes) {
    folder.write("labels", bytes);
    return message_if_any<InputError>([&] { read_labels(path, 2, 99, "e.npy"); });
  };
  const auto npy = [](const std::string& descr, const std::string& data) {
    return npy_bytes(npy_header(descr, "(2,)"), data);
  };
  const auto reaches = [&](const std::string& label, int digits) {
    return fmt::format(
        "{}: element 1 is {}, which reaches 2^{}, from where floating-point numbers of its type no "
        "longer tell whole numbers apart; give integers, or names if they are labels",
        path, label, digits);
  };
  EXPECT_EQ(said(npy("<f4", raw_bytes<float>({-16777215, 16777215}))), "");
  EXPECT_EQ(said(npy("<f4", raw_bytes<float>({1, 16777216}))), reaches("16777216", 24));
  EXPECT_EQ(said(npy("<f4", raw_bytes<float>({1, -16777216}))), reaches("-16777216", 24));
  // 2047 and 2048 in float16; 255 and 256 in bfloat16.
  EXPECT_EQ(said(npy("<f2", raw_bytes<std::uint16_t>({0x67FF, 0x67FF}))), "");
  EXPECT_EQ(said(npy("<f2", raw_bytes<std::uint16_t>({0x67FF, 0x6800}))), reaches("2048", 11));
  const auto bfloat16 = [](const std::vector<std::uint16_t>& values) {
    const std::string header = R"({"labels":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
    return raw_bytes<std::uint64_t>({header.size()}) + header + raw_bytes(values);
  };
  EXPECT_EQ(said(bfloat16({0x437F, 0x437F})), "");
  EXPECT_EQ(said(bfloat16({0x437F, 0x4380})), reaches("256", 8));
  EXPECT_EQ(said(npy("<f8", raw_bytes<double>({1, 9007199254740991}))), "");
  EXPECT_EQ(said(npy("<f8", raw_bytes<double>({1, 9007199254740992}))),
            reaches("9007199254740992", 53));
  const auto hdf5 = [&](const auto& values) {
    Hdf5Writer file;
    file.write("/labels", {2}, values.data());
    write_atomic(path, file.finish());
    return message_if_any<InputError>([&] { read_labels(path, 2, 99, "e.npy"); });
  };
  EXPECT_EQ(hdf5(std::vector<float>{1, 16777215}), "");
  EXPECT_TRUE(
      holds(hdf5(std::vector<float>{1, 16777216}), "element 1 is 16777216, which reaches 2^24"));
  EXPECT_EQ(hdf5(std::vector<double>{1, 16777216}), "");
  EXPECT_TRUE(holds(hdf5(std::vector<double>{1, 9007199254740992}), "reaches 2^53"));
}

// /classes names what /labels holds, and /network made /embeddings, however the two are asked for.
TEST(ReadRows, ClassesAndNetworkComeAlong) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  EmbeddingSet set;
  set.dim = 3;
  set.embeddings = golden_rows();
  set.labels = {1, 0, 1, 0, 1, 1};
  set.classes = {"b", "a"};
  set.network = "0123";
  set.exif = "turn";
  write_embeddings(path, set);
  for (const RowsToRead& what :
       {RowsToRead{path, ""}, RowsToRead{path + ":embeddings", ""}, RowsToRead{path, path},
        RowsToRead{path + ":/embeddings", path + ":labels"},
        RowsToRead{kArrays + "c_order.npy", path}}) {
    SCOPED_TRACE(what.embeddings + " " + what.labels);
    const EmbeddingSet read = read_rows(what).set;
    EXPECT_EQ(read.labels, set.labels);
    EXPECT_EQ(read.classes, set.classes);
    const bool own = what.embeddings.starts_with(path);
    EXPECT_EQ(read.network, own ? "0123" : "");
    EXPECT_EQ(read.exif, own ? "turn" : "");
  }
  EXPECT_EQ(read_rows({path, kArrays + "labels_int64.npy"}).set.network, "0123");
  EXPECT_TRUE(read_rows({path, kArrays + "labels_int64.npy"}).set.classes.empty());

  // Other data sets of the file are not what the two speak of.
  Hdf5Writer other;
  other.write("/raw", {6, 3}, set.embeddings.data());
  other.write("/ids", {6}, set.labels.data());
  other.write("/labels", {6}, kLabels.data());
  other.write_text("/classes", {"b", "a"});
  other.write_text("/network", {"0123"});
  write_atomic(path, other.finish());
  const EmbeddingSet read = read_rows({path + ":raw", path + ":ids"}).set;
  EXPECT_TRUE(read.classes.empty());
  EXPECT_EQ(read.network, "");
  EXPECT_TRUE(holds(why({kArrays + "c_order.npy", path}),
                    path + ": label 2 has no name among the 2 of /classes"));
}

TEST(ReadRows, CamerasComeAlong) {
  EXPECT_EQ(read_rows({kArrays + "named.npz", "", false}).set.cameras,
            (std::vector<std::int64_t>{5, 5, 6, 6, 7, 7}));
  // Cameras are read even if the labels come from another file.
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  EmbeddingSet set;
  set.dim = 3;
  set.embeddings = golden_rows();
  set.labels = {9, 9, 9, 9, 9, 9};
  set.cameras = {1, 2, 3, 1, 2, 3};
  set.categories = {4, 4, 4, 5, 5, 5};
  set.paths = {"a", "b", "c", "d", "e", "f"};
  write_embeddings(path, set);
  const EmbeddingSet read = read_rows({path, kArrays + "labels_int64.npy", false}).set;
  EXPECT_EQ(read.labels, kLabels);
  EXPECT_EQ(read.cameras, set.cameras);
  EXPECT_EQ(read.categories, set.categories);
  EXPECT_EQ(read.paths, set.paths);
}

TEST(ReadRows, WhatLiesBesideTheRowsInAnArchiveComesAlong) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"embeddings.npy", npy_rows({1, 2, 3, 4, 5, 6}, 3, 2)},
      {"labels.npy", npy_labels({7, 7, 8})}};
  const auto with = [&](const std::string& name, const std::string& bytes) {
    auto members = rows;
    members.emplace_back(name + ".npy", bytes);
    folder.write("e.npz", zip_of(members));
    return RowsToRead{folder.in("e.npz"), "", false};
  };
  const std::vector<std::int64_t> cameras = {4, 5, 6};
  for (const char* name : {"cameras", "camera_ids", "camids", "Camera", "camid", "cam"}) {
    const RowsRead read = read_rows(with(name, npy_labels(cameras)));
    EXPECT_EQ(read.set.cameras, cameras) << name;
    EXPECT_EQ(read.cameras, fmt::format("'{}'", name));
  }
  EXPECT_EQ(read_rows(with("other", npy_labels(cameras))).cameras, "");
  for (const std::string& bytes :
       {npy_bytes(npy_header("<i8", "(3, 1)"), raw_bytes(cameras)),
        npy_bytes(npy_header("<f4", "(3,)"), raw_bytes<float>({4, 5, 6}))}) {
    EXPECT_EQ(read_rows(with("cameras", bytes)).set.cameras, cameras);
  }
  EXPECT_EQ(read_rows(with("categories", npy_labels({9, 8, 9}))).set.categories,
            (std::vector<std::int64_t>{9, 8, 9}));
  const auto texts = [](const std::u32string& characters, int count) {
    return npy_bytes(npy_header("<U2", fmt::format("({},)", count)),
                     raw_bytes(std::vector<char32_t>(characters.begin(), characters.end())));
  };
  for (const char* name : {"paths", "filenames", "files"}) {
    EXPECT_EQ(read_rows(with(name, texts(U"a1b2c3", 3))).set.paths,
              (std::vector<std::string>{"a1", "b2", "c3"}))
        << name;
  }
  EXPECT_TRUE(holds(why(with("cams", texts(U"c1c2c1", 3))),
                    "'cams': holds names; number them, equal ones alike in all files"));
  EXPECT_TRUE(
      holds(why(with("cams", npy_bytes(npy_header("<f4", "(3,)"), raw_bytes<float>({4, 5.5F, 6})))),
            "'cams': element 1 is 5.5, no whole number"));
  // Of another number than the rows, of another shape, or no numbers.
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"cameras", npy_labels({4, 5})},
           {"categories", npy_labels({4, 5, 6, 7})},
           {"cameras", npy_bytes(npy_header("<i8", "(3, 2)"),
                                 raw_bytes(std::vector<std::int64_t>{4, 5, 6, 7, 8, 9}))},
           {"paths", texts(U"a1b2", 2)}}) {
    const std::string said = why(with(name, bytes));
    EXPECT_TRUE(holds(said, "'" + name));
    EXPECT_TRUE(said.ends_with("3 rows; mend or remove it")) << said;
  }
}

TEST(ReadRows, NormalizedRowsHaveLengthOneAndZerosStay) {
  const TemporaryFolder folder;
  folder.write("e.npy", npy_rows({3, 4, 0, 0, -0.5F, 0}, 3, 2));
  folder.write("y.npy", npy_labels({1, 1, 2}));
  const RowsRead read = read_rows({folder.path() / "e.npy", folder.path() / "y.npy", true});
  EXPECT_EQ(read.set.embeddings, (std::vector<float>{0.6F, 0.8F, 0, 0, -1, 0}));
  EXPECT_EQ(read.zero_rows, 1);
}

TEST(ReadRows, RefusesInOneLine) {
  const TemporaryFolder folder;
  const auto at = [&](const std::string& name) { return folder.in(name); };
  const std::string good = kArrays + "c_order.npy", labels = kArrays + "labels_int64.npy";
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    folder.write("bad", bytes);
    SCOPED_TRACE(part);
    const std::string said = why({at("bad"), labels, false});
    EXPECT_TRUE(said.starts_with(at("bad") + ": ")) << said;
    EXPECT_TRUE(holds(said, part));
  };
  EXPECT_TRUE(holds(why({good, "", false}), "no labels in it; give them by --labels"));
  EXPECT_TRUE(holds(why({labels, labels, false}), "int64 [6], not floating-point numbers"));
  EXPECT_TRUE(holds(why({good, good, false}), "not one label a row"));
  EXPECT_TRUE(holds(why({kArrays + "transposed.npy", labels, false}), "the rows lie across"));
  EXPECT_TRUE(holds(why({kArrays + "objects.npy", labels, false}), "is never loaded"));
  EXPECT_TRUE(holds(why({good, kArrays + "objects.npy", false}), "is never loaded"));
  EXPECT_TRUE(holds(why({kArrays + "named.npz:note", labels, false}), "is never loaded"));
  EXPECT_TRUE(holds(why({kArrays + "two_matrices.npz", "", false}),
                    "it holds 'labels' (int64 [6]), 'one' (float32 [6, 3]), 'two'"));
  EXPECT_TRUE(holds(why({kArrays + "named.npz:nothing", "", false}), "no array 'nothing'"));
  EXPECT_TRUE(holds(why({good + ":rows", labels, false}),
                    good + ": holds one array without a name; leave :rows out"));
  folder.write("two.npy", npy_rows({1, 2}, 2, 1));
  EXPECT_TRUE(holds(why({at("two.npy"), labels, false}),
                    labels + ": 6 labels for the 2 rows of " + at("two.npy")));
  EXPECT_TRUE(holds(why({at("none.npy"), labels, false}), "cannot be opened"));
  EXPECT_TRUE(holds(why({folder.path().string(), labels, false}), "not a regular file"));

  const float nan = std::numeric_limits<float>::quiet_NaN();
  refused(npy_rows({nan, 1, nan, 3, 4, 4}, 6, 1), "not-a-number in rows 0, 2; embed those");
  refused(npy_bytes(npy_header("<f8", "(6, 1)"), raw_bytes<double>({1, 1e39, 1, 1, 1, 1})),
          "infinity, or a number beyond float32, in row 1");
  const std::uint64_t beyond = std::uint64_t{1} << 63;
  folder.write("unsigned.npy", npy_bytes(npy_header("<u8", "(6,)"),
                                         raw_bytes<std::uint64_t>({1, 2, beyond + 1, 4, 5, 6})));
  EXPECT_EQ(why({good, at("unsigned.npy"), false}),
            at("unsigned.npy") + ": holds 9223372036854775809 in row 2; give numbers below 2^63");
  refused(npy_rows({}, 0, 2), "is empty");
  refused(npy_bytes(npy_header("<f4", "(2,)"), raw_bytes<float>({1, 2})), "give two dimensions");
  refused(npy_bytes(npy_header("<f4", "(6, 3)"), "1234"), "72 bytes in a file that has 4");
  refused(npy_bytes(npy_header("<f4", "(4611686018427387904, 4)"), ""), "than can be counted");
  refused(npy_bytes(npy_header("<f4", "(-1, 4)"), ""), "no list of whole numbers");
  refused(npy_bytes(npy_header("<c8", "(1, 1)"), "12345678"), "of the type '<c8'");
  refused(npy_bytes("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"),
          "records of several fields");
  refused(npy_bytes("{'descr': '<f4', 'shape': (1, 1)}", "1234"), "no descr, fortran_order");
  refused(npy_bytes("__import__('os').system('true')", ""), "no '{' where one belongs");
  refused(std::string("\x93NUMPY\x04\x00\x00\x00", 10), "version 4.0");
  refused(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "cut off within its header");
  refused("", "is empty");
  refused("<!DOCTYPE html><html>", "is a web page");
  refused(std::string("\x80\x04\x95", 3), "is a pickle");
  refused("hello", "is no file of embeddings that is known");
  refused(zip_of({{"readme.txt", "hello"}}), "holds no array of numpy's");
  refused(zip_of({{"archive/data.pkl", "x"}}), "is an archive of PyTorch");
  refused(zip_of({{"embeddings.npy", npy_rows({1, 2}, 1, 2)}}).substr(0, 80), "");
}

std::vector<std::int64_t> labels_in(const std::string& file, std::int64_t rows) {
  return read_labels(file, rows, 99, "e.npy").labels;
}

// Cameras are read as labels are, but are whole numbers.
TEST(ReadRows, CamerasOfAnotherFile) {
  const TemporaryFolder folder;
  folder.write("e.npy", npy_rows({1, 0, 0, 1, 1, 1}, 3, 2));
  folder.write("y.npy", npy_labels({4, 4, 5}));
  using Rows = std::vector<std::int64_t>;
  const auto read = [&](const std::string& cameras) {
    return read_rows({.embeddings = folder.in("e.npy"),
                      .labels = folder.in("y.npy"),
                      .cameras = folder.in(cameras)});
  };
  const auto refusal = [&](const std::string& cameras) {
    return message_if_any<InputError>([&] { read(cameras); });
  };
  folder.write("c.npy", npy_labels({7, -1, 7}));
  EXPECT_EQ(read("c.npy").set.cameras, (Rows{7, -1, 7}));
  EXPECT_EQ(read("c.npy").cameras, folder.in("c.npy") + ", int64");
  folder.write("c.csv", "pid,camid\n4,3\n4,1\n5,2\n");
  EXPECT_EQ(read("c.csv").set.cameras, (Rows{3, 1, 2}));
  EXPECT_EQ(read("c.csv:pid").set.cameras, (Rows{4, 4, 5}));
  folder.write("plain.csv", "3\n1\n2\n");
  EXPECT_EQ(read("plain.csv").set.cameras, (Rows{3, 1, 2}));
  folder.write("c.npz", zip_of({{"other.npy", npy_labels({1, 1, 1})},
                                {"camids.npy", npy_labels({2, 3, 2})}}));
  EXPECT_EQ(read("c.npz").set.cameras, (Rows{2, 3, 2}));
  EXPECT_EQ(read("c.npz:other").set.cameras, (Rows{1, 1, 1}));
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 2, 3, 4, 5, 6};
  set.labels = {8, 8, 8};
  set.cameras = {5, 6, 5};
  write_embeddings(folder.in("c.h5"), set);
  EXPECT_EQ(read("c.h5").set.cameras, set.cameras);
  EXPECT_EQ(read("c.h5:labels").set.cameras, set.labels);
  // They stand before those of the rows' own file.
  EXPECT_EQ(
      read_rows({.embeddings = folder.in("c.h5"), .labels = "", .cameras = folder.in("c.npy")})
          .set.cameras,
      (Rows{7, -1, 7}));

  folder.write("names.csv", "cam\nfront\nback\nfront\n");
  EXPECT_TRUE(holds(refusal("names.csv"), "holds names; number them, equal ones alike"));
  folder.write("four.npy", npy_labels({7, 7, 7, 7}));
  EXPECT_TRUE(holds(refusal("four.npy"), "4 cameras for the 3 rows of " + folder.in("e.npy") +
                                             "; give one camera a row"));
  folder.write("long.csv", "1\n2\n3\n4\n5\n6\n");
  EXPECT_TRUE(holds(refusal("long.csv"), "more cameras than the 3 rows of"));
  folder.write("gap.csv", "camid,x\n1,1\n,1\n2,1\n");
  EXPECT_TRUE(holds(refusal("gap.csv"), "line 3 has no camera; give one camera a row"));
  folder.write("nan.csv", "1\nnan\n2\n");
  EXPECT_TRUE(holds(refusal("nan.csv"), "among numbers, which is no camera"));
  folder.write("none.npz",
               zip_of({{"a.npy", npy_labels({1, 1, 1})}, {"b.npy", npy_labels({2, 3, 2})}}));
  EXPECT_TRUE(holds(refusal("none.npz"), "none of its arrays is called cameras;"));
  set.cameras.clear();
  write_embeddings(folder.in("none.h5"), set);
  EXPECT_TRUE(holds(refusal("none.h5"), "no data set /cameras;"));
  EXPECT_TRUE(holds(refusal("gone.npy"), folder.in("gone.npy") + ": "));
}

TEST(LabelsOfTables, NumbersNamesAndColumns) {
  const TemporaryFolder folder;
  const auto table = [&](const std::string& text) {
    folder.write("y.csv", text);
    return folder.in("y.csv");
  };
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(labels_in(table("7\n-3\n7\n"), 3), (Rows{7, -3, 7}));
  EXPECT_EQ(labels_in(table("7\n-3\n7"), 3), (Rows{7, -3, 7}));
  EXPECT_EQ(labels_in(table("label\n7\n-3\n"), 2), (Rows{7, -3}));
  EXPECT_EQ(labels_in(table("whatever\r\n7\r\n-3\r\n"), 2), (Rows{7, -3}));
  EXPECT_EQ(labels_in(table("\xef\xbb\xbfpath,Label\na,5\nb,6\n"), 2), (Rows{5, 6}));
  EXPECT_EQ(labels_in(table("path;class\na,x;5\n\nb;6\n"), 2), (Rows{5, 6}));
  EXPECT_EQ(labels_in(table("\n7\n-3\n\n\n"), 2), (Rows{7, -3}));
  EXPECT_EQ(labels_in(table("a\tb\n1\t2\n") + ":a", 1), (Rows{1}));
  EXPECT_EQ(labels_in(table("a,b\n\"1\",2\n\"3\",\"4\"\n") + ":b", 2), (Rows{2, 4}));
  const Labels named =
      read_labels(table("\"great, \"\"tit\"\"\"\nwren\n\"two\nlines\"\nwren\n"), 4, 99, "e.npy");
  EXPECT_EQ(named.labels, (Rows{0, 1, 2, 1}));
  EXPECT_EQ(named.classes, (std::vector<std::string>{"great, \"tit\"", "wren", "two\nlines"}));
  // In a column with words, numbers are words, too.
  EXPECT_EQ(read_labels(table("7\nseven\n7\n"), 3, 99, "e.npy").classes,
            (std::vector<std::string>{"7", "seven"}));
  // So are numbers that can be written otherwise, which would be one class.
  for (const char* text : {"007\n07\n7\n", "id\n007\n07\n7\n", "0\n-0\n00\n"}) {
    const Labels padded = read_labels(table(text), 3, 99, "e.npy");
    EXPECT_EQ(padded.labels, (Rows{0, 1, 2})) << text;
    EXPECT_EQ(padded.classes.size(), 3U) << text;
  }
  EXPECT_EQ(labels_in(table("0\n-10\n10\n"), 3), (Rows{0, -10, 10}));
  // Separators within quotes, and lines above the first, do not count.
  EXPECT_EQ(labels_in(table("\"a, b, c\";class\nx;5\ny;6\n"), 2), (Rows{5, 6}));
  EXPECT_EQ(labels_in(table("\"a,\n\"\", b\";class\nx;5\ny;6\n"), 2), (Rows{5, 6}));
  EXPECT_EQ(labels_in(table("5\" a, b;class;c;d\nx;5;1;1\n"), 1), (Rows{5}));
  EXPECT_EQ(labels_in(table("\n  \r\nid;class\nx;5\ny;6\n"), 2), (Rows{5, 6}));
  // As a safetensors file, a brace follows eight bytes, but those of a length.
  EXPECT_EQ(labels_in(table("category{x}\n5\n6\n"), 2), (Rows{5, 6}));
  // A first line that may be a label is not taken for a header: all lines are labels.
  EXPECT_EQ(labels_in(table("b\na\nb\n"), 3), (Rows{0, 1, 0}));
  EXPECT_EQ(labels_in(table("y\nn\ny\n"), 3), (Rows{0, 1, 0}));  // three labels
  EXPECT_EQ(labels_in(table("y\nn\ny\n"), 2), (Rows{0, 1}));     // a header y, two labels

  const auto refused = [&](const std::string& text, std::int64_t rows, const std::string& part,
                           const std::string& column = "") {
    const std::string said = message_of<InputError>([&] { labels_in(table(text) + column, rows); });
    EXPECT_TRUE(holds(said, part));
  };
  refused("b\na\nb\n", 2, "3 labels for the 2 rows of e.npy");
  refused("b\na\nb\na\n", 2, "4 labels for the 2 rows of e.npy");
  refused("b\na\nb\na\nb\n", 2, "y.csv: more labels than the 2 rows of e.npy");
  refused("y\nn\nn\n", 3, "2 labels for the 3 rows");
  refused("1\n2\n", 3, "2 labels for the 3 rows");
  refused("a,b\n1,2\n", 1, "say which, as FILE:COLUMN");
  refused("a,b\n1,2\n", 1, "no column 'c'", ":c");
  refused("a,label\n1,2\n3\n", 2, "line 3 has 1 columns");
  refused("a,label\n1,\n", 1, "line 2 has no label");
  refused("\"open\n1\n", 2, "a quote without an end");
  refused("\"a\"b\n", 1, "behind a closing quote");
  refused(std::string("\xff\xfe\x31\x00", 4), 1, "UTF-16");
  refused(std::string("1\n\0\n", 4), 2, "is no text");
  refused("\n\n", 1, "is empty");
  refused("7\nnan\n-3\nNaN\n", 4, "line 2 has 'nan' among numbers, which is no label");
  refused("a,label\nx,1.0\n\ny,None\nz,2.0\n", 3, "line 4 has 'None' among numbers");
  EXPECT_EQ(labels_in(table("a\nnone\na\n"), 3), (Rows{0, 1, 0}));
  EXPECT_EQ(labels_in(table("NA\n3\n4\n"), 2), (Rows{3, 4}));  // a header
  refused("7\n\n-3\n5\n", 3, "line 2 is empty; give one label a row");
  refused("label,label\n1,2\n", 1, "2 columns are called 'label'; rename all but one");
  // The longest field has 2^20 characters, the widest line 10,000 columns.
  const std::string longest(std::size_t{1} << 20, 'x');
  EXPECT_EQ(labels_in(table("a\n" + longest), 2), (Rows{0, 1}));
  refused("a\nx" + longest, 2, "line 2 holds 1048577 characters without a separator");
  refused("a\n\"x" + longest + '"', 2, "line 2: a quote without an end");
  refused(std::string(10'001, ','), 1, "line 1 has more than 10000 columns");
  refused("<html>", 1, "is a web page");
}

// Random tables must be read back as written, whatever their fields hold.
TEST(LabelsOfTables, AnyFieldsComeBack) {
  const TemporaryFolder folder;
  const std::uint64_t seed = random_seed();
  for (std::uint64_t i = 0; i < 200; ++i) {
    CounterRandom random(seed, 0, i);
    const std::int64_t columns = 1 + random.below(4), rows = 1 + random.below(9);
    const std::int64_t wanted = random.below(columns);
    const char separator = ",;\t"[random.below(3)];
    const std::string end = random.below(2) == 0 ? "\n" : "\r\n";
    std::string text;
    for (std::int64_t c = 0; c < columns; ++c) {
      text += fmt::format("{}head{}", c > 0 ? std::string(1, separator) : "", c);
    }
    std::vector<std::string> expected;
    for (std::int64_t r = 0; r < rows; ++r) {
      text += end;
      for (std::int64_t c = 0; c < columns; ++c) {
        std::string field = "x";
        for (std::int64_t n = random.below(6); n > 0; --n)
          field += "ab\",;\t\n\r "[random.below(9)];
        field += 'x';
        if (c > 0) text += separator;
        text += '"';
        for (const char each : field) text += each == '"' ? "\"\"" : std::string(1, each);
        text += '"';
        if (c == wanted) expected.push_back(field);
      }
    }
    if (random.below(2) == 0) text += end;
    folder.write("y.csv", text);
    SCOPED_TRACE(i);
    const Labels read =
        read_labels(fmt::format("{}:head{}", folder.in("y.csv"), wanted), rows, 99, "e");
    std::vector<std::string> names;
    for (const std::int64_t label : read.labels) {
      names.push_back(read.classes[static_cast<std::size_t>(label)]);
    }
    ASSERT_EQ(names, expected) << text;
  }
}

// Random arrays of every type, byte order and order of axes must be read back as written.
TEST(ReadRows, AnyTypeShapeAndOrder) {
  const TemporaryFolder folder;
  const std::uint64_t seed = random_seed();
  for (std::uint64_t i = 0; i < 200; ++i) {
    CounterRandom random(seed, 0, i);
    const auto rows = static_cast<std::size_t>(1 + random.below(40));
    const auto dim = static_cast<std::size_t>(1 + random.below(40));
    const bool fortran = random.below(2) == 0, wide = random.below(2) == 0;
    const bool big = random.below(2) == 0;
    std::vector<float> values;
    for (std::size_t n = 0; n < rows * dim; ++n) {
      values.push_back(static_cast<float>(random.below(2001) - 1000) / 8);
    }
    std::string data;
    for (std::size_t n = 0; n < rows * dim; ++n) {
      const float value = values[fortran ? n % rows * dim + n / rows : n];
      std::string bytes = wide ? raw_bytes<double>({value}) : raw_bytes<float>({value});
      if (big) std::reverse(bytes.begin(), bytes.end());
      data += bytes;
    }
    const std::string header =
        fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}, {}), }}\n",
                    big ? '>' : '<', wide ? "f8" : "f4", fortran ? "True" : "False", rows, dim);
    folder.write("e.npy", npy_bytes(header, data));
    folder.write("y.npy", npy_labels(std::vector<std::int64_t>(rows, 4)));
    SCOPED_TRACE(header);
    const RowsRead read = read_rows({folder.path() / "e.npy", folder.path() / "y.npy", false});
    ASSERT_EQ(values_of(read.set), values);
  }
}

TEST(ReadRows, HostileArchivesAreBounded) {
  const TemporaryFolder folder;
  // 64 MiB of zeros in some 64 KiB.
  std::string rows(std::size_t{64} << 20, '\0');
  const std::string member =
      npy_bytes(npy_header("<f4", fmt::format("({}, 4)", rows.size() / 16)), rows);
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back(fmt::format("a{}.npy", 10 + i));
  folder.write("bomb.npz", zip_of_copies(member, names));
  EXPECT_TRUE(holds(why({folder.path() / "bomb.npz", "", false}),
                    "with what it unpacks to, more than twice"));
}

// What is made of unpacked arrays counts with them.
TEST(ReadRows, UnpackedArraysAndWhatIsMadeOfThemAreBounded) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.npz");
  const std::string member = npy_labels(std::vector<std::int64_t>(2 << 17, 5));  // 2 MiB
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  folder.write("e.npz", zip_of({{"e.npy", member}}, true));
  const ArrayFile packed = open_arrays(path);
  packed.check_memory(kMost - member.size());
  EXPECT_EQ(message_of<InputError>([&] { packed.check_memory(kMost - member.size() + 1); }),
            path +
                ": unpacks to 2 MiB and needs 1021 MiB beside; save it uncompressed as float32 "
                "(numpy.savez)");
  folder.write("e.npz", zip_of({{"e.npy", member}}));
  open_arrays(path).check_memory(2 * kMost);
}

// Measuring takes much more memory for a row than these rows' single number. A file that hardly
// holds them must be refused, but searching, which takes less, must work, and so must the same rows
// uncompressed, as the refusal says.
TEST(ReadRows, RowsFarBeyondTheFileAreRefused) {
  constexpr std::int64_t kRows = 4'000'000;
  const TemporaryFolder folder;
  const std::string plain = npy_rows(std::vector<float>(kRows, 0.5F), kRows, 1);
  folder.write("e.npy", plain);
  folder.write("e.npz", zip_of({{"embeddings.npy", plain}}, true));
  folder.write("y.npy", npy_labels(std::vector<std::int64_t>(kRows, 1)));
  const auto path = [&](const char* name) { return folder.in(name); };
  EXPECT_EQ(read_rows({path("e.npy"), path("y.npy"), false}).set.count(), kRows);
  RowsToRead rows{path("e.npz"), path("y.npy"), false};
  const std::string said = why(rows);
  EXPECT_TRUE(holds(said, "its 4000000 rows would take 976 MiB to be measured"));
  EXPECT_TRUE(said.ends_with("give fewer, or write them uncompressed")) << said;
  rows.bytes_a_row = RowsToRead::kSearchedBytes;
  EXPECT_EQ(read_rows(rows).set.count(), kRows);
}

}  // namespace
}  // namespace rk
