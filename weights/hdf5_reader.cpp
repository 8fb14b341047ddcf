#include "engine/error.h"
#include "weights/hdf5_file.h"
#include "weights/hdf5_handle.h"
#include "weights/hdf5_survey.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <type_traits>

namespace rk {
namespace {

constexpr std::size_t kMaxTextBytes = 64 * 1024;
constexpr hssize_t kMaxAttributeElements = 64 * 1024;

std::string normalised(const std::string& path) {
  std::string out = path.empty() || path.front() != '/' ? "/" + path : path;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

}  // namespace

std::int64_t Hdf5Reader::Info::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t d : dims) product *= d;
  return product;
}

struct Hdf5Reader::State : SurveyedHdf5 {
  Hdf5DatasetId open_dataset(const std::string& path) const {
    const auto found = objects.find(path);
    if (found == objects.end()) {
      refuse("has no data set {}; see `h5ls -r` for what it holds", printable(path));
    }
    if (!found->second) refuse("{} is a group where a data set is expected", printable(path));
    Hdf5DatasetId dataset(H5Dopen2(file.get(), path.c_str(), H5P_DEFAULT));
    if (!dataset.valid()) damaged(path);
    return dataset;
  }

  Info info_of(const std::string& path, hid_t dataset) const {
    const Hdf5SpaceId space(H5Dget_space(dataset));
    const Hdf5TypeId type(H5Dget_type(dataset));
    Info info{};
    switch (H5Tget_class(type.get())) {
      case H5T_FLOAT: info.kind = Kind::kFloat; break;
      case H5T_INTEGER: info.kind = Kind::kInteger; break;
      case H5T_STRING: info.kind = Kind::kText; break;
      default: refuse("{} holds neither numbers nor text; convert it", printable(path));
    }
    if (info.kind != Kind::kText && H5Tget_size(type.get()) > 8) {
      refuse("{} has elements of more than 8 bytes; convert it to float32", printable(path));
    }
    if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
      refuse("{} has no extent; write it again with its values", printable(path));
    }
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 0 || rank > 4) {
      refuse("{} has {} dimensions; at most 4 are read", printable(path), rank);
    }
    hsize_t dims[4] = {};
    H5Sget_simple_extent_dims(space.get(), dims, nullptr);
    for (int i = 0; i < rank; ++i) {
      // A side may be huge only where another is 0, since the total was checked on opening.
      if (dims[i] > static_cast<hsize_t>(std::numeric_limits<std::int32_t>::max())) {
        refuse("{} has a side of {}; it is damaged", printable(path), dims[i]);
      }
      info.dims.push_back(static_cast<std::int64_t>(dims[i]));
    }
    return info;
  }

  template <class T>
  void read_numbers(const std::string& path, hid_t dataset, const Info& info, T* out) const {
    if (info.kind == Kind::kText)
      refuse("{} holds text where numbers are expected", printable(path));
    if (std::is_integral_v<T> && info.kind == Kind::kFloat) {
      refuse("{} holds floating-point numbers where integers are expected; convert it",
             printable(path));
    }
    if (info.elements() == 0) return;
    const Hdf5PropertyId transfer(H5Pcreate(H5P_DATASET_XFER));
    if constexpr (std::is_integral_v<T>) {
      // Without this the library quietly clamps what does not fit.
      auto abort_on_range = [](H5T_conv_except_t kind, hid_t, hid_t, void*, void*,
                               void*) -> H5T_conv_ret_t {
        return kind == H5T_CONV_EXCEPT_RANGE_HI || kind == H5T_CONV_EXCEPT_RANGE_LOW
                   ? H5T_CONV_ABORT
                   : H5T_CONV_UNHANDLED;
      };
      H5Pset_type_conv_cb(transfer.get(), abort_on_range, nullptr);
    }
    if (H5Dread(dataset, hdf5_native_type<T>(), H5S_ALL, H5S_ALL, transfer.get(), out) < 0) {
      if (hdf5_last_error().find("exception") != std::string::npos) {
        refuse("{} holds a number outside the range of {} bits; convert it", printable(path),
               8 * sizeof(T));
      }
      damaged(path);
    }
  }

  Hdf5AttributeId open_attribute(const std::string& object, const std::string& attribute) const {
    const std::string path = normalised(object);
    if (!objects.contains(path)) return {};
    if (H5Aexists_by_name(file.get(), path.c_str(), attribute.c_str(), H5P_DEFAULT) <= 0) return {};
    Hdf5AttributeId id(
        H5Aopen_by_name(file.get(), path.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT));
    if (!id.valid()) damaged(path);
    return id;
  }

  template <class T>
  std::vector<T> attribute_numbers(const std::string& object, const std::string& attribute,
                                   hid_t id) const {
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
};

Hdf5Reader::Hdf5Reader(const std::string& path) : state_(std::make_unique<State>()) {
  hdf5_prepare();
  state_->name = path;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    state_->refuse("cannot be opened ({}); check the path", std::strerror(error));
  }
  if (S_ISDIR(status.st_mode)) state_->refuse("is a directory; give an HDF5 file");
  if (!S_ISREG(status.st_mode)) state_->refuse("is not a regular file; give an HDF5 file");
  if (status.st_size == 0) state_->refuse("is empty; copy or make it again");
  state_->file_bytes = static_cast<std::uint64_t>(status.st_size);
  const Hdf5PropertyId access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_file_locking(access.get(), false, true);  // reading needs no lock, and NFS may have none
  state_->file = Hdf5FileId(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  state_->survey();
}

Hdf5Reader::Hdf5Reader(std::span<const std::byte> image, const std::string& name)
    : state_(std::make_unique<State>()) {
  hdf5_prepare();
  state_->name = name;
  state_->file_bytes = image.size();
  if (image.empty()) state_->refuse("is empty; copy or make it again");
  const Hdf5PropertyId access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 1 << 20, false);
  // The library only reads from the image, although it takes a pointer to non-const.
  if (H5Pset_file_image(access.get(), const_cast<std::byte*>(image.data()), image.size()) < 0) {
    state_->refuse("cannot be opened ({})", hdf5_last_error());  // want of memory, which it throws
  }
  // It takes two open images of one name for the same file, so each gets a name of its own.
  const std::string unique = fmt::format("image {}", fmt::ptr(state_.get()));
  state_->file = Hdf5FileId(H5Fopen(unique.c_str(), H5F_ACC_RDONLY, access.get()));
  state_->survey();
}

Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::string& Hdf5Reader::name() const { return state_->name; }

bool Hdf5Reader::has(const std::string& object) const {
  return state_->objects.contains(normalised(object));
}

std::vector<std::string> Hdf5Reader::datasets(const std::string& group) const {
  const std::string root = normalised(group);
  const std::string prefix = root == "/" ? root : root + "/";
  std::vector<std::string> out;
  for (const auto& [path, is_dataset] : state_->objects) {
    if (is_dataset && path.starts_with(prefix)) out.push_back(path);
  }
  return out;
}

std::vector<std::string> Hdf5Reader::children(const std::string& group) const {
  const std::string root = normalised(group);
  const std::string prefix = root == "/" ? root : root + "/";
  std::vector<std::string> out;
  for (const auto& [path, is_dataset] : state_->objects) {
    if (path.size() > prefix.size() && path.starts_with(prefix) &&
        path.find('/', prefix.size()) == std::string::npos) {
      out.push_back(path.substr(prefix.size()));
    }
  }
  return out;
}

Hdf5Reader::Info Hdf5Reader::info(const std::string& dataset) const {
  const std::string path = normalised(dataset);
  return state_->info_of(path, state_->open_dataset(path).get());
}

template <class T> std::vector<T> Hdf5Reader::read(const std::string& dataset) const {
  const std::string path = normalised(dataset);
  const Hdf5DatasetId id = state_->open_dataset(path);
  const Info info = state_->info_of(path, id.get());
  std::vector<T> values(static_cast<std::size_t>(info.elements()));
  state_->read_numbers(path, id.get(), info, values.data());
  return values;
}

template <class T>
void Hdf5Reader::read_into(const std::string& dataset, const std::vector<std::int64_t>& dims,
                           T* out) const {
  const std::string path = normalised(dataset);
  const Hdf5DatasetId id = state_->open_dataset(path);
  const Info info = state_->info_of(path, id.get());
  if (info.dims != dims) {
    state_->refuse("{} has shape [{}] where [{}] is expected", printable(path),
                   fmt::join(info.dims, ", "), fmt::join(dims, ", "));
  }
  state_->read_numbers(path, id.get(), info, out);
}

std::vector<std::string> Hdf5Reader::read_text(const std::string& dataset) const {
  const std::string path = normalised(dataset);
  const Hdf5DatasetId id = state_->open_dataset(path);
  const Info info = state_->info_of(path, id.get());
  if (info.kind != Kind::kText) {
    state_->refuse("{} holds numbers where text is expected", printable(path));
  }
  const auto count = static_cast<std::size_t>(info.elements());
  std::vector<std::string> out;
  if (count == 0) return out;
  out.reserve(count);
  const Hdf5TypeId stored(H5Dget_type(id.get()));
  const Hdf5TypeId memory(H5Tcopy(H5T_C_S1));
  H5Tset_cset(memory.get(), H5Tget_cset(stored.get()));
  if (H5Tis_variable_str(stored.get()) > 0) {
    const Hdf5SpaceId space(H5Dget_space(id.get()));
    H5Tset_size(memory.get(), H5T_VARIABLE);
    // Many elements may point at one long string in the file: ask what all of them need first.
    hsize_t bytes = 0;
    if (H5Dvlen_get_buf_size(id.get(), memory.get(), space.get(), &bytes) < 0) {
      state_->damaged(path);
    }
    if (bytes > kMaxDatasetBytes)
      state_->refuse("{} unfolds to more than 1 GiB of text", printable(path));
    std::vector<char*> pointers(count, nullptr);
    if (H5Dread(id.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0) {
      state_->damaged(path);
    }
    for (const char* text : pointers) out.emplace_back(text == nullptr ? "" : text);
    H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, pointers.data());
  } else {
    const std::size_t width = H5Tget_size(stored.get());
    H5Tset_size(memory.get(), width + 1);  // room for the terminator, whatever the padding stored
    std::vector<char> text(count * (width + 1));
    if (H5Dread(id.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) {
      state_->damaged(path);
    }
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(text.data() + i * (width + 1));
  }
  return out;
}

std::optional<std::string> Hdf5Reader::text_attribute(const std::string& object,
                                                      const std::string& name) const {
  const Hdf5AttributeId id = state_->open_attribute(object, name);
  if (!id.valid()) return std::nullopt;
  const Hdf5TypeId stored(H5Aget_type(id.get()));
  const Hdf5SpaceId space(H5Aget_space(id.get()));
  if (H5Tget_class(stored.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1) {
    state_->refuse("attribute {} of {} is not a text", printable(name), printable(object));
  }
  const auto too_long = [&] {
    state_->refuse("attribute {} of {} is longer than 64 KiB", printable(name), printable(object));
  };
  const Hdf5TypeId memory(H5Tcopy(H5T_C_S1));
  H5Tset_cset(memory.get(), H5Tget_cset(stored.get()));
  if (H5Tis_variable_str(stored.get()) > 0) {
    H5Tset_size(memory.get(), H5T_VARIABLE);
    char* text = nullptr;
    if (H5Aread(id.get(), memory.get(), &text) < 0) state_->damaged(object);
    std::string out = text == nullptr ? "" : text;
    H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, &text);
    if (out.size() > kMaxTextBytes) too_long();
    return out;
  }
  const std::size_t width = H5Tget_size(stored.get());
  if (width > kMaxTextBytes) too_long();
  H5Tset_size(memory.get(), width + 1);
  std::string text(width + 1, '\0');
  if (H5Aread(id.get(), memory.get(), text.data()) < 0) state_->damaged(object);
  return std::string(text.c_str());
}

std::optional<std::int64_t> Hdf5Reader::integer_attribute(const std::string& object,
                                                          const std::string& name) const {
  const Hdf5AttributeId id = state_->open_attribute(object, name);
  if (!id.valid()) return std::nullopt;
  const auto values = state_->attribute_numbers<std::int64_t>(object, name, id.get());
  if (values.size() != 1) {
    state_->refuse("attribute {} of {} is not an integer", printable(name), printable(object));
  }
  return values[0];
}

std::optional<std::vector<double>> Hdf5Reader::number_attribute(const std::string& object,
                                                                const std::string& name) const {
  const Hdf5AttributeId id = state_->open_attribute(object, name);
  if (!id.valid()) return std::nullopt;
  return state_->attribute_numbers<double>(object, name, id.get());
}

#define RK_INSTANTIATE(T)                                                                       \
  template std::vector<T> Hdf5Reader::read(const std::string&) const;                           \
  template void Hdf5Reader::read_into(const std::string&, const std::vector<std::int64_t>&, T*) \
      const;
RK_INSTANTIATE(float)
RK_INSTANTIATE(double)
RK_INSTANTIATE(std::int64_t)
RK_INSTANTIATE(std::uint8_t)
#undef RK_INSTANTIATE

}  // namespace rk
