#include "weights/hdf5_handle.h"

#include <cstdint>

namespace rk {

void hdf5_prepare() {
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

std::string hdf5_last_error() {
  std::string text;
  auto take_first = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& first = *static_cast<std::string*>(out);
    if (first.empty() && error->desc != nullptr) first = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &text);
  return text.empty() ? "the HDF5 library gave no reason" : text;
}

template <> hid_t hdf5_native_type<float>() { return H5T_NATIVE_FLOAT; }
template <> hid_t hdf5_native_type<double>() { return H5T_NATIVE_DOUBLE; }
template <> hid_t hdf5_native_type<std::int64_t>() { return H5T_NATIVE_INT64; }
template <> hid_t hdf5_native_type<std::uint8_t>() { return H5T_NATIVE_UINT8; }

}  // namespace rk
