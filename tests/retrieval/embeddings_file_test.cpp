#include "retrieval/files/embeddings_file.h"

#include "engine/base/error.h"
#include "retrieval/files/read_rows.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/file.h"
#include "weights/written_by.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace rk {
namespace {

TEST(EmbeddingsFile, ComesBackAsItWent) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  EmbeddingSet set;
  set.dim = 3;
  set.embeddings = {1, 2, 3, -4, 5.5F, 1e-30F};
  set.labels = {-1, std::int64_t{1} << 60};
  set.cameras = {4, 5};
  set.paths = {"a/b.jpg", "c d.png"};
  set.network = "0123";
  set.exif = "turn";
  write_embeddings(path, set);
  const EmbeddingSet back = read_embeddings(path);
  EXPECT_EQ(back.dim, 3);
  EXPECT_EQ(back.embeddings, set.embeddings);
  EXPECT_EQ(back.labels, set.labels);
  EXPECT_EQ(back.cameras, set.cameras);
  EXPECT_EQ(back.paths, set.paths);
  EXPECT_EQ(back.exif, "turn");
  EXPECT_TRUE(back.categories.empty());
  EXPECT_TRUE(is_signed(Hdf5Reader(path)));
}

// Cut off, the two names would be one, and the file could not be read.
TEST(EmbeddingsFile, NamesThatWouldBeCutOffAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  EmbeddingSet set;
  set.dim = 1;
  set.embeddings = {1, 2};
  set.labels = {0, 1};
  set.classes = {std::string("a\0b", 3), std::string("a\0c", 3)};
  const std::string said = message_of<InputError>([&] { write_embeddings(path, set); });
  EXPECT_TRUE(said.starts_with(path + ": would cut the name 'a")) << said;
  EXPECT_TRUE(said.ends_with("b' off at its NUL, as HDF5 does; rename it")) << said;
  EXPECT_FALSE(std::filesystem::exists(path));
  set.classes = {"a", "b"};
  set.paths = {"1.png", std::string("2\0.png", 6)};
  EXPECT_THROW(write_embeddings(path, set), InputError);
  set.paths.clear();
  write_embeddings(path, set);
  EXPECT_EQ(read_embeddings(path).classes, set.classes);
}

// Classes of two files are matched by name: two labels of one name would be taken for one class.
TEST(EmbeddingsFile, AClassNamedTwiceIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  EmbeddingSet set;
  set.dim = 1;
  set.embeddings = {1, 2, 3};
  set.labels = {0, 1, 2};
  set.classes = {"a", "b", "a"};
  write_embeddings(path, set);
  EXPECT_EQ(message_of<InputError>([&] { read_embeddings(path); }),
            path + ": /classes names 'a' twice; give every class a name of its own");
}

TEST(EmbeddingsFile, OthersSayNothingOfWhoWroteThemAndHowPicturesWereSeen) {
  const TemporaryFolder folder;
  const std::string path = folder.in("e.h5");
  const std::vector<float> rows(2, 0.5F);
  const std::vector<std::int64_t> labels(2, 1);
  for (const char* attribute : {"", "Pillow", "RankineX 1"}) {
    Hdf5Writer file;
    file.write("/embeddings", {2, 1}, rows.data());
    file.write("/labels", {2}, labels.data());
    file.write_text("/network", {"mine"});
    for (const char* name : {"written_by", "exif"}) file.set_attribute("/", name, attribute);
    write_atomic(path, file.finish());
    EXPECT_EQ(read_embeddings(path).exif, "");
    EXPECT_FALSE(is_signed(Hdf5Reader(path)));
  }
}

// Mistakes that numpy makes easy must be named as what they are.
TEST(EmbeddingsFile, ShapesAndNamesThatAreAlmostRight) {
  const std::string path = testing::TempDir() + "embeddings_almost.h5";
  const std::vector<float> rows(12, 0.5F);
  const std::vector<std::int64_t> labels(4, 1);
  const auto refusal = [&](const std::string& name, const std::vector<std::int64_t>& dims,
                           const std::vector<std::int64_t>& label_dims) {
    Hdf5Writer file;
    file.write(name, dims, rows.data());
    file.write("/labels", label_dims, labels.data());
    write_atomic(path, file.finish());
    return message_if_any<InputError>([&] { read_embeddings(path); });
  };
  EXPECT_EQ(refusal("/embeddings", {4, 3}, {4}), "");
  EXPECT_EQ(refusal("/embeddings", {4, 3}, {4, 1}),
            path + ": /labels is [4, 1]; store it flat, [4] (numpy: .ravel())");
  EXPECT_EQ(refusal("/embeddings", {4, 3}, {1, 4}),
            path + ": /labels is [1, 4]; store it flat, [4] (numpy: .ravel())");
  EXPECT_EQ(refusal("/embeddings", {3, 4}, {4}),
            path +
                ": /embeddings is [3, 4] and /labels has 4 values: the rows lie across; store "
                "them transposed (numpy: .T)");
  EXPECT_EQ(refusal("/embeddings", {4, 3}, {2}),
            path +
                ": /labels has the shape [2], not one value for each of the 4 rows of the "
                "embeddings; store one value a row");
  EXPECT_EQ(refusal("/test/features", {4, 3}, {4}),
            path +
                ": no data set /embeddings; store float32 [N, D] there, or name it as FILE:NAME; "
                "it holds "
                "/labels, "
                "/test/features");
  std::filesystem::remove(path);
}

// As arrays of other formats may be called and stored.
TEST(EmbeddingsFile, CamerasHaveTheirUsualNames) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& name, auto values) {
    Hdf5Writer file;
    const std::vector<float> rows = {1, 2, 3};
    const std::vector<std::int64_t> labels = {7, 7, 8};
    file.write("/embeddings", {3, 1}, rows.data());
    file.write("/labels", {3}, labels.data());
    file.write(name, {3}, values.data());
    write_atomic(folder.in("e.h5"), file.finish());
    return read_rows({folder.in("e.h5"), "", false});
  };
  const std::vector<std::int64_t> cameras = {4, 5, 6};
  for (const std::string& name : usual_camera_names()) {
    const RowsRead as_integers = read("/" + name, cameras);
    EXPECT_EQ(as_integers.set.cameras, cameras) << name;
    EXPECT_EQ(as_integers.cameras, "/" + name);
  }
  EXPECT_EQ(read("/camids", std::vector<float>{4, 5, 6}).set.cameras, cameras);
  EXPECT_TRUE(read("/views", cameras).set.cameras.empty());
}

TEST(EmbeddingsFile, CamerasOnOneSideOnlyAreRefused) {
  EmbeddingSet a, b;
  a.dim = b.dim = 2;
  a.cameras = {1};
  try {
    check_same_space(a, "q.h5", b, "g.h5");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find("g.h5: no cameras"), 0U) << error.what();
  }
}

}  // namespace
}  // namespace rk
