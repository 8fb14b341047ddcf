#include "weights/hdf5/file.h"
#include "weights/hdf5/handle.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>
#include <utility>

namespace rk {
namespace {

// The type in the file is little-endian on every machine.
template <class T> hid_t stored_type();
template <> hid_t stored_type<float>() { return H5T_IEEE_F32LE; }
template <> hid_t stored_type<double>() { return H5T_IEEE_F64LE; }
template <> hid_t stored_type<std::int64_t>() { return H5T_STD_I64LE; }
template <> hid_t stored_type<std::uint8_t>() { return H5T_STD_U8LE; }

// Writing goes to memory, so a failure is a lack of memory or a mistake in the calling code.
void require(bool done, const std::string& what) {
  if (!done) throw std::runtime_error("[hdf5] writing " + what + ": " + hdf5_last_error());
}

Hdf5TypeId text_type() {
  Hdf5TypeId type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

}  // namespace

struct Hdf5Writer::State {
  std::vector<std::byte> image;  // written by the library, returned by finish()
  Hdf5FileId file;

  // The library uses `image` as its memory for the file, so the file is never copied.
  static void* resize(void*, std::size_t bytes, H5FD_file_image_op_t, void* state) {
    std::vector<std::byte>& image = static_cast<State*>(state)->image;
    try {
      image.resize(bytes);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return image.data();
  }
  static herr_t release(void*, H5FD_file_image_op_t, void*) { return 0; }
  static void* same(void* state) { return state; }
  static herr_t keep(void*) { return 0; }

  Hdf5DatasetId create(const std::string& path, hid_t type, const std::vector<std::int64_t>& dims) {
    std::vector<hsize_t> sides(dims.begin(), dims.end());
    const Hdf5SpaceId space(
        dims.empty() ? H5Screate(H5S_SCALAR)
                     : H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr));
    const Hdf5PropertyId links(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links.get(), 1);
    const Hdf5PropertyId creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_obj_track_times(creation.get(), false);  // equal contents must be equal bytes
    Hdf5DatasetId dataset(H5Dcreate2(file.get(), path.c_str(), type, space.get(), links.get(),
                                     creation.get(), H5P_DEFAULT));
    require(dataset.valid(), path);
    return dataset;
  }

  void attribute(const std::string& object, const std::string& name, hid_t space, hid_t stored,
                 hid_t memory, const void* value) {
    if (object != "/" && H5Lexists(file.get(), object.c_str(), H5P_DEFAULT) <= 0) {
      const Hdf5PropertyId links(H5Pcreate(H5P_LINK_CREATE));
      H5Pset_create_intermediate_group(links.get(), 1);
      const Hdf5ObjectId group(
          H5Gcreate2(file.get(), object.c_str(), links.get(), H5P_DEFAULT, H5P_DEFAULT));
      require(group.valid(), object);
    }
    const Hdf5ObjectId id(H5Oopen(file.get(), object.c_str(), H5P_DEFAULT));
    require(id.valid(), object);
    if (H5Aexists(id.get(), name.c_str()) > 0) H5Adelete(id.get(), name.c_str());
    const Hdf5AttributeId attribute_id(
        H5Acreate2(id.get(), name.c_str(), stored, space, H5P_DEFAULT, H5P_DEFAULT));
    require(attribute_id.valid() && H5Awrite(attribute_id.get(), memory, value) >= 0, name);
  }

  void scalar_attribute(const std::string& object, const std::string& name, hid_t stored,
                        hid_t memory, const void* value) {
    const Hdf5SpaceId space(H5Screate(H5S_SCALAR));
    attribute(object, name, space.get(), stored, memory, value);
  }
};

Hdf5Writer::Hdf5Writer(std::size_t expected_bytes) : state_(std::make_unique<State>()) {
  state_->image.reserve(expected_bytes);  // before the library holds its address
  hdf5_prepare();
  const Hdf5PropertyId access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 8 << 20, false);
  H5FD_file_image_callbacks_t memory{};
  memory.image_realloc = State::resize;
  memory.image_free = State::release;
  memory.udata_copy = State::same;
  memory.udata_free = State::keep;
  memory.udata = state_.get();
  require(H5Pset_file_image_callbacks(access.get(), &memory) >= 0, "a file");
  // The library takes two open images of one name for the same file, so each gets a unique name.
  const std::string unique = fmt::format("image {}", fmt::ptr(state_.get()));
  state_->file = Hdf5FileId(H5Fcreate(unique.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  require(state_->file.valid(), "a file");
}

Hdf5Writer::~Hdf5Writer() = default;
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;

template <class T>
void Hdf5Writer::write(const std::string& dataset, const std::vector<std::int64_t>& dims,
                       const T* values) {
  const Hdf5DatasetId id = state_->create(dataset, stored_type<T>(), dims);
  for (const std::int64_t d : dims) {
    if (d == 0) return;
  }
  require(H5Dwrite(id.get(), hdf5_native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
          dataset);
}

void Hdf5Writer::write_text(const std::string& dataset, const std::vector<std::string>& values) {
  const Hdf5TypeId type = text_type();
  const Hdf5DatasetId id =
      state_->create(dataset, type.get(), {static_cast<std::int64_t>(values.size())});
  if (values.empty()) return;
  std::vector<const char*> pointers;
  pointers.reserve(values.size());
  for (const std::string& value : values) pointers.push_back(value.c_str());
  require(H5Dwrite(id.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) >= 0,
          dataset);
}

void Hdf5Writer::set_attribute(const std::string& object, const std::string& name,
                               const std::string& value) {
  const Hdf5TypeId type = text_type();
  const char* text = value.c_str();
  state_->scalar_attribute(object, name, type.get(), type.get(), &text);
}

void Hdf5Writer::set_attribute(const std::string& object, const std::string& name,
                               std::int64_t value) {
  state_->scalar_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void Hdf5Writer::set_attribute(const std::string& object, const std::string& name, double value) {
  state_->scalar_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void Hdf5Writer::set_attribute(const std::string& object, const std::string& name,
                               const std::vector<double>& values) {
  const hsize_t count = values.size();
  const Hdf5SpaceId space(H5Screate_simple(1, &count, nullptr));
  state_->attribute(object, name, space.get(), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data());
}

std::vector<std::byte> Hdf5Writer::finish(std::size_t spare) {
  require(H5Fflush(state_->file.get(), H5F_SCOPE_GLOBAL) >= 0, "the file");
  const ssize_t bytes = H5Fget_file_image(state_->file.get(), nullptr, 0);
  require(bytes > 0, "the file");
  state_->file.reset();
  std::vector<std::byte> image = std::move(state_->image);
  image.resize(static_cast<std::size_t>(bytes));
  image.reserve(image.size() + spare);
  return image;
}

#define RK_INSTANTIATE(T) \
  template void Hdf5Writer::write(const std::string&, const std::vector<std::int64_t>&, const T*);
RK_INSTANTIATE(float)
RK_INSTANTIATE(double)
RK_INSTANTIATE(std::int64_t)
RK_INSTANTIATE(std::uint8_t)
#undef RK_INSTANTIATE

}  // namespace rk
