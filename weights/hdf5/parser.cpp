#include "weights/hdf5/parser.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <type_traits>

namespace rk {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{64} << 10;
constexpr hssize_t kMaxAttributeElements = hssize_t{64} * 1024;
constexpr std::uint64_t kTextsAtOnce = 4096;
constexpr std::size_t kLeastChunkCache = std::size_t{1} << 20;

using Kind = Hdf5Reader::Kind;

struct Native {
  hid_t id;
  std::size_t bytes;
  bool integral;
};

Native native(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::kFloat: return {hdf5_native_type<float>(), 4, false};
    case Hdf5Type::kDouble: return {hdf5_native_type<double>(), 8, false};
    case Hdf5Type::kInt64: return {hdf5_native_type<std::int64_t>(), 8, true};
    case Hdf5Type::kUint8: return {hdf5_native_type<std::uint8_t>(), 1, true};
  }
  throw std::invalid_argument("[hdf5] no such type");
}

// Transfer properties for a conversion to `to`: without these the library silently clamps integers
// that do not fit.
Hdf5PropertyId conversion_of(const Native& to) {
  Hdf5PropertyId transfer(H5Pcreate(H5P_DATASET_XFER));
  auto abort_on_range = [](H5T_conv_except_t kind, hid_t, hid_t, void*, void*,
                           void*) -> H5T_conv_ret_t {
    return kind == H5T_CONV_EXCEPT_RANGE_HI || kind == H5T_CONV_EXCEPT_RANGE_LOW
               ? H5T_CONV_ABORT
               : H5T_CONV_UNHANDLED;
  };
  if (to.integral) H5Pset_type_conv_cb(transfer.get(), abort_on_range, nullptr);
  return transfer;
}

// Selects elements [first, first + count) in C order.
bool select_in_order(hid_t space, std::span<const std::int64_t> dims, std::uint64_t first,
                     std::uint64_t count) {
  if (dims.empty()) return H5Sselect_all(space) >= 0;
  if (dims.size() == 1) {
    const hsize_t start = first, length = count;
    return H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &length, nullptr) >= 0;
  }
  std::vector<hsize_t> points(count * dims.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t rest = first + i;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      const auto side = static_cast<std::uint64_t>(dims[axis]);
      points[i * dims.size() + axis] = rest % side;
      rest /= side;
    }
  }
  return H5Sselect_elements(space, H5S_SELECT_SET, count, points.data()) >= 0;
}

// Lets the library use the image in place; by default it would copy the image twice. All its
// properties and drivers then hold that one address, which the library takes for its own memory.
void use_in_place(hid_t access, std::byte* image) {
  H5FD_file_image_callbacks_t callbacks{};
  callbacks.image_malloc = [](std::size_t, H5FD_file_image_op_t, void* at) { return at; };
  callbacks.image_memcpy = [](void* to, const void*, std::size_t, H5FD_file_image_op_t, void*) {
    return to;
  };
  callbacks.image_realloc = [](void*, std::size_t, H5FD_file_image_op_t, void*) -> void* {
    return nullptr;  // a file that is only read never grows
  };
  callbacks.image_free = [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; };
  callbacks.udata_copy = [](void* at) { return at; };
  callbacks.udata_free = [](void*) -> herr_t { return 0; };
  callbacks.udata = image;
  H5Pset_file_image_callbacks(access, &callbacks);
}

// The upper half of a float32, little-endian as on every machine that Keras runs on.
Hdf5TypeId bfloat16_type() {
  Hdf5TypeId type(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(type.get(), 15, 7, 8, 0, 7);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), 127);
  return type;
}

// As h5py and PyTables store numpy's bool: an enumeration of integers 0 and 1.
bool is_boolean(hid_t enumeration) {
  std::array<std::byte, 8> value{};
  return H5Tget_size(enumeration) <= value.size() && H5Tget_nmembers(enumeration) == 2 &&
         H5Tenum_valueof(enumeration, "FALSE", value.data()) >= 0 &&
         H5Tenum_valueof(enumeration, "TRUE", value.data()) >= 0;
}

int significand_digits(hid_t type) {
  std::size_t sign = 0, exponent_at = 0, exponent = 0, significand_at = 0, significand = 0;
  H5Tget_fields(type, &sign, &exponent_at, &exponent, &significand_at, &significand);
  const int hidden = H5Tget_norm(type) == H5T_NORM_IMPLIED ? 1 : 0;
  return static_cast<int>(significand) + hidden;
}

}  // namespace

Hdf5Parser::Hdf5Parser(const std::string& path) {
  hdf5_prepare();
  name = path;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) file_bytes = static_cast<std::uint64_t>(status.st_size);
  const Hdf5PropertyId access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_file_locking(access.get(), false, true);  // reading needs no lock, and NFS may lack locks
  file = Hdf5FileId(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  survey();
}

Hdf5Parser::Hdf5Parser(std::span<const std::byte> image, const std::string& image_name) {
  hdf5_prepare();
  name = image_name;
  file_bytes = image.size();
  const Hdf5PropertyId access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 1 << 20, false);
  // The library only reads from the image, although it takes a pointer to non-const.
  auto* bytes = const_cast<std::byte*>(image.data());
  use_in_place(access.get(), bytes);
  H5Pset_file_image(access.get(), bytes, image.size());
  // The library takes two open images of one name for the same file, so each gets a unique name.
  const std::string unique = fmt::format("image {}", fmt::ptr(this));
  file = Hdf5FileId(H5Fopen(unique.c_str(), H5F_ACC_RDONLY, access.get()));
  survey();
}

FileIdentity Hdf5Parser::identity() const {
  const Hdf5PropertyId access(H5Fget_access_plist(file.get()));
  void* descriptor = nullptr;
  struct stat status {};
  if (H5Pget_driver(access.get()) != H5FD_SEC2 ||
      H5Fget_vfd_handle(file.get(), access.get(), &descriptor) < 0 ||
      ::fstat(*static_cast<const int*>(descriptor), &status) != 0) {
    return {};
  }
  return identity_of(status);
}

Hdf5Parser::Open& Hdf5Parser::look_at(const std::string& object) {
  const std::string path = hdf5_path(object);
  if (open_ && open_->path == path) return *open_;
  open_.reset();
  const auto found = objects.find(path);
  if (found == objects.end()) {
    refuse("has no data set {}; see `h5ls -r` for what it holds", printable(path));
  }
  if (!found->second) refuse("{} is a group where a data set is expected", printable(path));
  Open set;
  set.path = path;
  set.id = Hdf5DatasetId(H5Dopen2(file.get(), path.c_str(), H5P_DEFAULT));
  if (!set.id.valid()) damaged(path);
  if (const std::string why = describe(set); !why.empty()) {
    Open unread;
    unread.path = path;
    unread.unread = printable(path) + " " + why;
    return open_.emplace(std::move(unread));
  }
  describe_chunks(set);
  if (!set.chunk.empty()) {
    // The library unpacks a chunk again for every part that is read unless its cache holds the
    // chunk.
    const auto bytes = std::accumulate(set.chunk.begin(), set.chunk.end(), set.item,
                                       std::multiplies<std::size_t>());
    const Hdf5PropertyId access(H5Pcreate(H5P_DATASET_ACCESS));
    H5Pset_chunk_cache(access.get(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT,
                       std::max(bytes, kLeastChunkCache), H5D_CHUNK_CACHE_W0_DEFAULT);
    set.id = Hdf5DatasetId();
    set.id = Hdf5DatasetId(H5Dopen2(file.get(), path.c_str(), access.get()));
    if (!set.id.valid()) damaged(path);
  }
  return open_.emplace(std::move(set));
}

Hdf5Parser::Open& Hdf5Parser::open(const std::string& object) {
  Open& set = look_at(object);
  if (!set.unread.empty()) refuse("{}", set.unread);
  return set;
}

// Returns why the data set is not read, without its path; empty if it is read.
std::string Hdf5Parser::describe(Open& set) {
  set.space = Hdf5SpaceId(H5Dget_space(set.id.get()));
  set.stored = Hdf5TypeId(H5Dget_type(set.id.get()));
  set.type = Hdf5TypeId(H5Tcopy(set.stored.get()));
  set.item = H5Tget_size(set.stored.get());
  switch (H5Tget_class(set.stored.get())) {
    case H5T_FLOAT: set.info.kind = Kind::kFloat; break;
    case H5T_INTEGER: set.info.kind = Kind::kInteger; break;
    case H5T_STRING: set.info.kind = Kind::kText; break;
    case H5T_ENUM:
      if (!is_boolean(set.stored.get())) return "holds an enumeration; write its integers";
      set.info.kind = Kind::kInteger;
      break;
    case H5T_OPAQUE:
      if (set.item != 2 || text_attribute(set.path, "dtype") != "bfloat16") {
        return "holds bytes that say no type, as Keras writes bfloat16; save it in float32";
      }
      set.type = bfloat16_type();
      set.info.kind = Kind::kFloat;
      break;
    default: return "holds neither numbers nor text; convert it";
  }
  if (set.info.kind == Kind::kFloat) set.info.digits = significand_digits(set.type.get());
  if (set.info.kind != Kind::kText && set.item > 8) {
    return "has elements of more than 8 bytes; convert it to float32";
  }
  return describe_shape(set);
}

std::string Hdf5Parser::describe_shape(Open& set) const {
  if (H5Sget_simple_extent_type(set.space.get()) == H5S_NULL) {
    return "has no extent; write it again with its values";
  }
  const int rank = H5Sget_simple_extent_ndims(set.space.get());
  if (rank < 0 || rank > static_cast<int>(kHdf5MaxRank)) {
    return fmt::format("has {} dimensions; at most 4 are read", rank);
  }
  std::array<hsize_t, kHdf5MaxRank> dims{};
  H5Sget_simple_extent_dims(set.space.get(), dims.data(), nullptr);
  for (int i = 0; i < rank; ++i) {
    const hsize_t side = dims[at(i)];
    // A side can be huge only if another is 0, since the total was checked on opening.
    if (side > static_cast<hsize_t>(std::numeric_limits<std::int32_t>::max())) {
      return fmt::format("has a side of {}; it is damaged", side);
    }
    set.info.dims.push_back(static_cast<std::int64_t>(side));
  }
  return "";
}

void Hdf5Parser::describe_chunks(Open& set) const {
  const Hdf5PropertyId plist(H5Dget_create_plist(set.id.get()));
  if (!plist.valid()) damaged(set.path);
  const int filters = H5Pget_nfilters(plist.get());
  if (H5Pget_layout(plist.get()) != H5D_CHUNKED || filters <= 0) return;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, element = 1;
    std::size_t values = 1;
    Hdf5Filter filter;
    filter.id = H5Pget_filter2(plist.get(), static_cast<unsigned>(i), &flags, &values, &element, 0,
                               nullptr, nullptr);
    if (filter.id < 0) damaged(set.path);
    filter.element_bytes = values > 0 ? element : set.item;
    set.filters.push_back(filter);
  }
  set.chunk.resize(set.info.dims.size());
  const int rank = static_cast<int>(set.chunk.size());
  if (H5Pget_chunk(plist.get(), rank, set.chunk.data()) != rank) damaged(set.path);
  if (std::find(set.chunk.begin(), set.chunk.end(), hsize_t{0}) != set.chunk.end()) {
    damaged(set.path);
  }
  if (set.info.kind == Kind::kText) return;
  set.fill.resize(set.item);
  H5D_fill_value_t state = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(plist.get(), &state) < 0) damaged(set.path);
  if (state != H5D_FILL_VALUE_UNDEFINED &&
      H5Pget_fill_value(plist.get(), set.stored.get(), set.fill.data()) < 0) {
    damaged(set.path);
  }
}

Hdf5Reader::Info Hdf5Parser::info(const std::string& path) { return open(path).info; }

std::vector<std::int64_t> Hdf5Parser::piece(const std::string& path) {
  const Open& set = open(path);
  std::vector<std::int64_t> sides = set.info.dims;
  for (std::size_t axis = 0; axis < set.chunk.size(); ++axis) {
    sides[axis] = std::min(sides[axis], static_cast<std::int64_t>(set.chunk[axis]));
  }
  return sides;
}

// Unpacks the chunk at `at` into set.unfolded, in the file's type.
void Hdf5Parser::unfold(Open& set, const std::vector<hsize_t>& at) const {
  if (!set.unfolded.empty() && set.unfolded_at == at) return;
  set.unfolded.clear();
  const auto bytes =
      std::accumulate(set.chunk.begin(), set.chunk.end(), set.item, std::multiplies<std::size_t>());
  // H5Dget_chunk_info_by_coord looks up another chunk than H5Dread_chunk where one axis that is not
  // the first is unlimited.
  hsize_t stored = 0;
  bool written = H5Dget_chunk_storage_size(set.id.get(), at.data(), &stored) >= 0;
  if (!written && hdf5_last_error().find("not allocated") == std::string::npos) damaged(set.path);
  // The library also answers 0 if no chunk of the data set is stored.
  if (stored == 0 && H5Dget_storage_size(set.id.get()) == 0) written = false;
  if (stored > file_bytes) {
    refuse("{} has a chunk of {} bytes in a file of {}; it is damaged, copy it again",
           printable(set.path), stored, file_bytes);
  }
  if (!written) {
    set.unfolded.resize(bytes);
    for (std::size_t i = 0; !set.fill.empty() && i < bytes; i += set.item) {
      std::memcpy(set.unfolded.data() + i, set.fill.data(), set.item);
    }
  } else {
    std::vector<std::byte> chunk(stored);
    std::uint32_t skipped = 0;
    if (H5Dread_chunk(set.id.get(), H5P_DEFAULT, at.data(), &skipped, chunk.data()) < 0) {
      damaged(set.path);
    }
    try {
      set.unfolded = unfold_chunk(std::move(chunk), set.filters, skipped, bytes);
    } catch (const std::runtime_error& error) {
      refuse("a chunk of {} {}; it is damaged or made to exhaust memory", printable(set.path),
             error.what());
    }
  }
  set.unfolded_at = at;
}

// Before the library unpacks chunks itself: throws InputError if a chunk is larger than declared.
void Hdf5Parser::check_all_chunks(Open& set) const {
  if (set.texts_checked || set.chunk.empty() || set.info.elements() == 0) return;
  std::vector<hsize_t> at(set.chunk.size(), 0);
  for (std::size_t axis = at.size(); axis > 0;) {
    unfold(set, at);
    for (axis = at.size(); axis > 0; --axis) {
      hsize_t& here = at[axis - 1];
      here += set.chunk[axis - 1];
      if (here < static_cast<hsize_t>(set.info.dims[axis - 1])) break;
      here = 0;
    }
  }
  set.unfolded = {};
  set.texts_checked = true;
}

void Hdf5Parser::refuse_conversion(const std::string& path, Hdf5Type type) const {
  if (hdf5_last_error().find("exception") != std::string::npos) {
    refuse("{} holds a number outside the range of {} bits; convert it", printable(path),
           8 * native(type).bytes);
  }
  damaged(path);
}

void Hdf5Parser::read_box_of_chunk(Open& set, Hdf5Type type, const Hdf5Box& box, std::size_t count,
                                   std::span<std::byte> out) const {
  const std::size_t rank = set.chunk.size();
  std::vector<hsize_t> at(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto begin = static_cast<hsize_t>(box.offset[axis]);
    at[axis] = begin - begin % set.chunk[axis];
  }
  unfold(set, at);
  const Native to = native(type);
  const bool as_stored = H5Tequal(set.type.get(), to.id) > 0;
  std::vector<std::byte> own(as_stored ? 0 : count * std::max(set.item, to.bytes));
  std::byte* gathered = as_stored ? out.data() : own.data();
  // Copies row by row along the last axis.
  const std::size_t row = static_cast<std::size_t>(box.sides[rank - 1]) * set.item;
  std::vector<hsize_t> row_at(rank, 0);
  for (std::size_t done = 0; done < count * set.item; done += row) {
    std::size_t element = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      element = element * set.chunk[axis] + static_cast<hsize_t>(box.offset[axis]) - at[axis] +
                row_at[axis];
    }
    std::memcpy(gathered + done, set.unfolded.data() + element * set.item, row);
    for (std::size_t axis = rank - 1; axis > 0; --axis) {
      if (++row_at[axis - 1] < static_cast<hsize_t>(box.sides[axis - 1])) break;
      row_at[axis - 1] = 0;
    }
  }
  if (!as_stored) convert(set, type, count, own, out);
}

// Converts elements as stored, at the front of `own`, which has space for them in either type.
void Hdf5Parser::convert(const Open& set, Hdf5Type type, std::size_t count,
                         std::span<std::byte> own, std::span<std::byte> out) const {
  const Native to = native(type);
  const Hdf5PropertyId transfer = conversion_of(to);
  if (H5Tconvert(set.type.get(), to.id, count, own.data(), nullptr, transfer.get()) < 0) {
    refuse_conversion(set.path, type);
  }
  std::memcpy(out.data(), own.data(), count * to.bytes);
}

std::size_t Hdf5Parser::read_numbers(const std::string& path, Hdf5Type type, const Hdf5Box& box,
                                     std::span<std::byte> out) {
  Open& set = open(path);
  const Native to = native(type);
  if (set.info.kind == Kind::kText) {
    refuse("{} holds text where numbers are expected", printable(set.path));
  }
  if (to.integral && set.info.kind == Kind::kFloat) {
    refuse("{} holds floating-point numbers where integers are expected; convert it",
           printable(set.path));
  }
  const std::size_t count = elements_of(box);
  expect(box.sides.size() == set.info.dims.size() && count * to.bytes <= out.size(),
         "[hdf5] expected a box of rank {} within {} bytes", set.info.dims.size(), out.size());
  if (count == 0) return 0;
  if (!set.chunk.empty()) {
    read_box_of_chunk(set, type, box, count, out);
    return count * to.bytes;
  }
  Hdf5SpaceId from, in_memory;
  if (!box.sides.empty()) {
    const std::vector<hsize_t> offset(box.offset.begin(), box.offset.end());
    const std::vector<hsize_t> sides(box.sides.begin(), box.sides.end());
    from = Hdf5SpaceId(H5Scopy(set.space.get()));
    in_memory =
        Hdf5SpaceId(H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr));
    if (H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, offset.data(), nullptr, sides.data(),
                            nullptr) < 0) {
      damaged(set.path);
    }
  }
  const hid_t to_space = in_memory.valid() ? in_memory.get() : H5S_ALL;
  const hid_t from_space = from.valid() ? from.get() : H5S_ALL;
  if (H5Tget_class(set.stored.get()) == H5T_OPAQUE) {
    // The library does not convert such elements while it reads them.
    std::vector<std::byte> own(count * std::max(set.item, to.bytes));
    if (H5Dread(set.id.get(), set.stored.get(), to_space, from_space, H5P_DEFAULT, own.data()) <
        0) {
      damaged(set.path);
    }
    convert(set, type, count, own, out);
    return count * to.bytes;
  }
  const Hdf5PropertyId transfer = conversion_of(to);
  if (H5Dread(set.id.get(), to.id, to_space, from_space, transfer.get(), out.data()) < 0) {
    refuse_conversion(set.path, type);
  }
  return count * to.bytes;
}

std::vector<std::string> Hdf5Parser::read_texts(const std::string& path, std::uint64_t first) {
  Open& set = open(path);
  if (set.info.kind != Kind::kText) {
    refuse("{} holds numbers where text is expected", printable(set.path));
  }
  const auto all = static_cast<std::uint64_t>(set.info.elements());
  std::vector<std::string> out;
  if (first >= all) return out;
  check_all_chunks(set);
  const bool variable = H5Tis_variable_str(set.type.get()) > 0;
  // With space for the terminator, whatever padding the file uses.
  const std::size_t width = variable ? sizeof(char*) : set.item + 1;
  const std::uint64_t count =
      std::min({all - first, kTextsAtOnce, std::max<std::uint64_t>(1, kHdf5SlotBytes / width)});
  const Hdf5TypeId memory(H5Tcopy(H5T_C_S1));
  H5Tset_cset(memory.get(), H5Tget_cset(set.type.get()));
  H5Tset_size(memory.get(), variable ? H5T_VARIABLE : width);
  const Hdf5SpaceId from(H5Scopy(set.space.get()));
  const hsize_t length = count;
  const Hdf5SpaceId in_memory(H5Screate_simple(1, &length, nullptr));
  if (!select_in_order(from.get(), set.info.dims, first, count)) damaged(set.path);
  out.reserve(count);
  if (variable) {
    std::vector<char*> pointers(count, nullptr);
    if (H5Dread(set.id.get(), memory.get(), in_memory.get(), from.get(), H5P_DEFAULT,
                pointers.data()) < 0) {
      damaged(set.path);
    }
    for (const char* text : pointers) out.emplace_back(text == nullptr ? "" : text);
    H5Dvlen_reclaim(memory.get(), in_memory.get(), H5P_DEFAULT, pointers.data());
  } else {
    std::vector<char> text(count * width);
    if (H5Dread(set.id.get(), memory.get(), in_memory.get(), from.get(), H5P_DEFAULT, text.data()) <
        0) {
      damaged(set.path);
    }
    for (std::uint64_t i = 0; i < count; ++i) out.emplace_back(text.data() + i * width);
  }
  return out;
}

Hdf5AttributeId Hdf5Parser::open_attribute(const std::string& object,
                                           const std::string& attribute) const {
  const std::string path = hdf5_path(object);
  if (!objects.contains(path)) return {};
  if (H5Aexists_by_name(file.get(), path.c_str(), attribute.c_str(), H5P_DEFAULT) <= 0) return {};
  Hdf5AttributeId id(
      H5Aopen_by_name(file.get(), path.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  if (!id.valid()) damaged(path);
  return id;
}

template <class T>
std::vector<T> Hdf5Parser::attribute_numbers(const std::string& object,
                                             const std::string& attribute, hid_t id) const {
  const Hdf5TypeId type(H5Aget_type(id));
  const Hdf5SpaceId space(H5Aget_space(id));
  const H5T_class_t kind = H5Tget_class(type.get());
  const bool fits = kind == H5T_INTEGER || (kind == H5T_FLOAT && std::is_floating_point_v<T>);
  const hssize_t points = H5Sget_simple_extent_npoints(space.get());
  if (!fits || points < 1 || points > kMaxAttributeElements) {
    refuse("attribute {} of {} is not {}", printable(attribute), printable(object),
           std::is_floating_point_v<T> ? "a number" : "an integer");
  }
  std::vector<T> values(static_cast<std::size_t>(points));
  if (H5Aread(id, hdf5_native_type<T>(), values.data()) < 0) damaged(object);
  return values;
}

std::optional<std::string> Hdf5Parser::text_attribute(const std::string& object,
                                                      const std::string& attribute) {
  const Hdf5AttributeId id = open_attribute(object, attribute);
  if (!id.valid()) return std::nullopt;
  const Hdf5TypeId stored(H5Aget_type(id.get()));
  const Hdf5SpaceId space(H5Aget_space(id.get()));
  if (H5Tget_class(stored.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1) {
    refuse("attribute {} of {} is not a text", printable(attribute), printable(object));
  }
  const auto too_long = [&] {
    refuse("attribute {} of {} is longer than 64 KiB", printable(attribute), printable(object));
  };
  const Hdf5TypeId memory(H5Tcopy(H5T_C_S1));
  H5Tset_cset(memory.get(), H5Tget_cset(stored.get()));
  if (H5Tis_variable_str(stored.get()) > 0) {
    H5Tset_size(memory.get(), H5T_VARIABLE);
    char* text = nullptr;
    if (H5Aread(id.get(), memory.get(), &text) < 0) damaged(object);
    std::string out = text == nullptr ? "" : text;
    H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, &text);
    if (out.size() > kMaxTextBytes) too_long();
    return out;
  }
  const std::size_t width = H5Tget_size(stored.get());
  if (width > kMaxTextBytes) too_long();
  H5Tset_size(memory.get(), width + 1);
  std::string text(width + 1, '\0');
  if (H5Aread(id.get(), memory.get(), text.data()) < 0) damaged(object);
  return std::string(text.c_str());
}

std::optional<std::int64_t> Hdf5Parser::integer_attribute(const std::string& object,
                                                          const std::string& attribute) {
  const Hdf5AttributeId id = open_attribute(object, attribute);
  if (!id.valid()) return std::nullopt;
  const auto values = attribute_numbers<std::int64_t>(object, attribute, id.get());
  if (values.size() != 1) {
    refuse("attribute {} of {} is not an integer", printable(attribute), printable(object));
  }
  return values[0];
}

std::optional<std::vector<double>> Hdf5Parser::number_attribute(const std::string& object,
                                                                const std::string& attribute) {
  const Hdf5AttributeId id = open_attribute(object, attribute);
  if (!id.valid()) return std::nullopt;
  return attribute_numbers<double>(object, attribute, id.get());
}

}  // namespace rk
