// Files of every kind, drawn anew in each run, must be read as the HDF5 library reads them.
#include "engine/base/error.h"
#include "engine/system/read_file.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "weights/hdf5/boxes.h"
#include "weights/hdf5/file.h"
#include "weights/hdf5/handle.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rk {
namespace {

struct Kind {
  const char* name;
  hid_t type;
  bool integer;
};

hid_t half_type(hid_t order_of) {
  const hid_t type = H5Tcopy(order_of);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

std::vector<Kind> kinds() {
  hdf5_prepare();
  return {{"float16", half_type(H5T_IEEE_F32LE), false},
          {"float16 big-endian", half_type(H5T_IEEE_F32BE), false},
          {"float32", H5T_IEEE_F32LE, false},
          {"float32 big-endian", H5T_IEEE_F32BE, false},
          {"float64", H5T_IEEE_F64LE, false},
          {"float64 big-endian", H5T_IEEE_F64BE, false},
          {"int8", H5T_STD_I8LE, true},
          {"uint8", H5T_STD_U8LE, true},
          {"int16 big-endian", H5T_STD_I16BE, true},
          {"int32", H5T_STD_I32LE, true},
          {"int64", H5T_STD_I64LE, true},
          {"uint64 big-endian", H5T_STD_U64BE, true}};
}

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }

enum class Storage {
  kAny,
  kOneGrowingAxis,  // filtered chunks, which the library then finds by an array that grows
};

struct Drawn {
  Kind kind;
  std::vector<hsize_t> dims, chunk;  // chunk empty: contiguous
  std::string text;                  // for messages
};

// Draws a file image with a data set /x of any shape, perhaps written only in part.
std::vector<std::byte> draw(Random& random, Storage storage, Drawn& drawn) {
  const bool one_growing = storage == Storage::kOneGrowingAxis;
  const std::vector<Kind> all = kinds();
  drawn.kind = all[below(random, all.size())];
  drawn.text = drawn.kind.name;
  const std::size_t rank = one_growing ? 1 + below(random, 4) : below(random, 5);
  constexpr std::array<hsize_t, 5> kLongest = {1, 600'000, 900, 50, 18};
  constexpr std::array<hsize_t, 5> kLongestGrowing = {1, 5000, 100, 30, 14};
  const hsize_t longest = one_growing ? kLongestGrowing[rank] : kLongest[rank];
  for (std::size_t i = 0; i < rank; ++i) drawn.dims.push_back(1 + below(random, longest));
  const Hdf5PropertyId creation(H5Pcreate(H5P_DATASET_CREATE));
  std::vector<hsize_t> most = drawn.dims;
  if (one_growing || (rank > 0 && below(random, 4) > 0)) {
    // Then a chunk may be larger than the data set.
    const bool growing = one_growing || below(random, 2) == 0;
    std::uint64_t chunks = 1;
    for (const hsize_t side : drawn.dims) {
      const hsize_t length = 1 + below(random, growing ? side + side / 4 + 1 : side);
      // Not thousands of tiny chunks, which only take time.
      const bool few = chunks * (side / length + 1) < 5000;
      drawn.chunk.push_back(few ? length : side);
      chunks *= side / drawn.chunk.back() + 1;
    }
    H5Pset_chunk(creation.get(), static_cast<int>(rank), drawn.chunk.data());
    if (one_growing) {
      most = drawn.chunk;
      for (std::size_t i = 0; i < rank; ++i) most[i] = std::max(most[i], drawn.dims[i]);
      const std::uint64_t axis = below(random, rank);
      most[axis] = H5S_UNLIMITED;
      drawn.text += fmt::format(", axis {} unlimited", axis);
    } else if (growing) {
      most.assign(rank, H5S_UNLIMITED);
    }
    const std::uint64_t filters = one_growing ? 1 + below(random, 4) : below(random, 5);
    if (filters == 1 || filters == 3) H5Pset_shuffle(creation.get());
    if (filters > 0 && filters != 3) H5Pset_deflate(creation.get(), 1);
    if (filters == 4) H5Pset_shuffle(creation.get());
    if (filters == 4) H5Pset_deflate(creation.get(), 2);
    drawn.text += fmt::format(", filters {}", filters);
    if (below(random, 2) == 0) {
      const float seven = 7;
      H5Pset_fill_value(creation.get(), H5T_NATIVE_FLOAT, &seven);
      drawn.text += ", fill 7";
    }
  }
  drawn.text +=
      fmt::format(", [{}] in [{}]", fmt::join(drawn.dims, ", "), fmt::join(drawn.chunk, ", "));
  const Hdf5PropertyId access(H5Pcreate(H5P_FILE_ACCESS));
  // The earliest format knows one index of chunks, a tree; the latest has one for each kind of
  // growth.
  if (one_growing || below(random, 2) == 0) {
    H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    drawn.text += ", latest format";
  }
  // Not in memory: in the latest format, H5Fget_file_image spoils a checksum of an open file.
  const TemporaryFolder folder;
  const std::string path = folder.in("drawn.h5");
  Hdf5FileId file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  const Hdf5SpaceId space(
      rank == 0 ? H5Screate(H5S_SCALAR)
                : H5Screate_simple(static_cast<int>(rank), drawn.dims.data(), most.data()));
  Hdf5DatasetId set(H5Dcreate2(file.get(), "x", drawn.kind.type, space.get(), H5P_DEFAULT,
                               creation.get(), H5P_DEFAULT));
  // All of it, or a part, so that chunks are missing.
  std::vector<hsize_t> sides = drawn.dims, first(rank, 0);
  if (!drawn.chunk.empty() && below(random, 2) == 0) {
    // At least half of one axis is written: a data set far larger than its stored part is refused.
    const std::uint64_t axis = below(random, rank);
    sides[axis] = std::max<hsize_t>(1, sides[axis] / 2);
    first[axis] = below(random, drawn.dims[axis] - sides[axis] + 1);
    drawn.text += fmt::format(", of axis {} {} from {} on", axis, sides[axis], first[axis]);
  }
  std::uint64_t count = 1;
  for (const hsize_t side : sides) count *= side;
  std::vector<double> values(count);
  for (double& value : values) {
    value = drawn.kind.integer ? static_cast<double>(below(random, 100))
                               : static_cast<double>(below(random, 60'000)) / 17.0 - 1000.0;
  }
  if (rank > 0) {
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first.data(), nullptr, sides.data(), nullptr);
  }
  const Hdf5SpaceId in_memory(
      rank == 0 ? H5Screate(H5S_SCALAR)
                : H5Screate_simple(static_cast<int>(rank), sides.data(), nullptr));
  H5Dwrite(set.get(), H5T_NATIVE_DOUBLE, in_memory.get(), space.get(), H5P_DEFAULT, values.data());
  set.reset();
  file.reset();
  return read_file(path, std::size_t{1} << 30);
}

// The reference: the library reads the whole data set at once.
template <class T>
std::vector<T> read_plainly(const std::vector<std::byte>& image, const Drawn& drawn) {
  const Hdf5PropertyId access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 1 << 20, false);
  H5Pset_file_image(access.get(), const_cast<std::byte*>(image.data()), image.size());
  const Hdf5FileId file(H5Fopen("plain", H5F_ACC_RDONLY, access.get()));
  const Hdf5DatasetId set(H5Dopen2(file.get(), "x", H5P_DEFAULT));
  std::size_t count = 1;
  for (const hsize_t side : drawn.dims) count *= side;
  std::vector<T> values(count);
  EXPECT_GE(H5Dread(set.get(), hdf5_native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
            0);
  return values;
}

// Compares both ways of reading, at once and block by block, with the reference.
template <class T> void compare(const std::vector<std::byte>& image, const Drawn& drawn) {
  const Hdf5Reader reader(image, "drawn");
  const std::vector<T> read = reader.read<T>("/x");
  std::vector<T> visited;
  reader.visit<T>("/x", [&](std::span<const T> part) {
    visited.insert(visited.end(), part.begin(), part.end());
  });
  const std::vector<T> plain = read_plainly<T>(image, drawn);
  ASSERT_EQ(read.size(), plain.size()) << drawn.text;
  ASSERT_EQ(visited.size(), plain.size()) << drawn.text;
  // Compares bits: values may be NaN.
  EXPECT_EQ(std::memcmp(read.data(), plain.data(), read.size() * sizeof(T)), 0) << drawn.text;
  EXPECT_EQ(std::memcmp(visited.data(), plain.data(), read.size() * sizeof(T)), 0) << drawn.text;
}

void compare_drawn(Storage storage, int files) {
  Random random(random_seed());
  for (int i = 0; i < files && !testing::Test::HasFailure(); ++i) {
    Drawn drawn;
    const std::vector<std::byte> image = draw(random, storage, drawn);
    compare<float>(image, drawn);
    compare<double>(image, drawn);
    if (!drawn.kind.integer) continue;
    compare<std::int64_t>(image, drawn);
    compare<std::uint8_t>(image, drawn);
  }
}

TEST(Hdf5Kinds, AreReadBitEqualToTheLibrarysOwnReading) { compare_drawn(Storage::kAny, 60); }

TEST(Hdf5Kinds, ChunksOfOneGrowingAxisAreReadAsTheLibraryReadsThem) {
  compare_drawn(Storage::kOneGrowingAxis, 100);
}

// Texts of any length must come whole, even if they are longer than one answer of the parser.
TEST(Hdf5Kinds, TextsOfAnyLengthComeWhole) {
  Random random(random_seed());
  for (int i = 0; i < 10; ++i) {
    std::vector<std::string> texts;
    const std::uint64_t count = 1 + below(random, 20'000);
    for (std::uint64_t k = 0; k < count; ++k) texts.emplace_back(below(random, 60), 'a' + k % 26);
    texts[below(random, count)] = std::string(kHdf5SlotBytes * (1 + below(random, 3)) - 3, 'z');
    texts[below(random, count)] = std::string(kHdf5SlotBytes - 16 - below(random, 40), 'y');
    Hdf5Writer writer;
    writer.write_text("/texts", texts);
    const std::vector<std::byte> image = writer.finish();
    EXPECT_EQ(Hdf5Reader(image, "texts").read_text("/texts"), texts);
  }
}

// A group with more objects than one answer of the parser can name.
TEST(Hdf5Kinds, ManyObjectsAreAllListed) {
  Hdf5Writer writer;
  const float x = 1;
  const std::string group = "/" + std::string(250, 'g');
  for (int i = 0; i < 12'000; ++i) writer.write(fmt::format("{}/{}", group, i), {}, &x);
  const Hdf5Reader reader(writer.finish(), "many");
  EXPECT_EQ(reader.children(group).size(), 12'000U);
  EXPECT_EQ(reader.read<float>(group + "/11999").at(0), 1.0F);
}

// Every element must lie in exactly one box, and every box within one piece.
TEST(Hdf5Boxes, CoverAShapeOnce) {
  Random random(random_seed());
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> dims, piece;
    std::int64_t count = 1;
    for (std::uint64_t axis = 0, rank = below(random, 5); axis < rank; ++axis) {
      dims.push_back(1 + static_cast<std::int64_t>(below(random, 9)));
      piece.push_back(
          1 + static_cast<std::int64_t>(below(random, static_cast<std::uint64_t>(dims.back()))));
      count *= dims.back();
    }
    const auto most = 1 + static_cast<std::int64_t>(below(random, 40));
    std::vector<int> out(static_cast<std::size_t>(count), 0);
    int next = 0;
    for (Hdf5Boxes boxes(dims, piece, most); !boxes.done();) {
      const Hdf5Box box = boxes.next();
      std::vector<int> values;
      std::int64_t size = 1;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        size *= box.sides[axis];
        EXPECT_EQ(box.offset[axis] / piece[axis],
                  (box.offset[axis] + box.sides[axis] - 1) / piece[axis]);
      }
      ASSERT_LE(size, most);
      for (std::int64_t k = 0; k < size; ++k) values.push_back(++next);
      scatter(box, dims, reinterpret_cast<const std::byte*>(values.data()), out.data());
    }
    std::sort(out.begin(), out.end());
    for (std::size_t k = 0; k < out.size(); ++k) ASSERT_EQ(out[k], static_cast<int>(k) + 1);
  }
}

}  // namespace
}  // namespace rk
