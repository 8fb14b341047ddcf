#include "weights/hdf5/handle.h"

#include <cstdint>
#include <new>

namespace rk {

void hdf5_prepare() {
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

std::string hdf5_last_error() {
  struct First {
    std::string text;
    bool no_space = false;
  } first;
  auto take_first = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& taken = *static_cast<First*>(out);
    if (!taken.text.empty() || error->desc == nullptr) return 0;
    taken.text = error->desc;
    taken.no_space = error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &first);
  // The library also speaks of "allocating" file space, which is no lack of memory.
  if (first.no_space && first.text.find("memory") != std::string::npos) throw std::bad_alloc();
  return first.text.empty() ? "the HDF5 library gave no reason" : first.text;
}

template <> hid_t hdf5_native_type<float>() { return H5T_NATIVE_FLOAT; }
template <> hid_t hdf5_native_type<double>() { return H5T_NATIVE_DOUBLE; }
template <> hid_t hdf5_native_type<std::int64_t>() { return H5T_NATIVE_INT64; }
template <> hid_t hdf5_native_type<std::uint8_t>() { return H5T_NATIVE_UINT8; }

}  // namespace rk
