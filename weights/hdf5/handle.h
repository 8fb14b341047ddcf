// Owning handles for HDF5 identifiers, and the library's last error as text. Include this only in
// weights/hdf5 and its tests.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

namespace rk {

// Closes its identifier when destroyed; `Close` is H5Dclose, H5Sclose and so on. Invalid
// identifiers are negative.
template <herr_t (*Close)(hid_t)> class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  ~Hdf5Handle() { reset(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
    }
    return *this;
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;

  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  void reset() {
    if (id_ >= 0) Close(id_);
    id_ = H5I_INVALID_HID;
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using Hdf5FileId = Hdf5Handle<H5Fclose>;
using Hdf5DatasetId = Hdf5Handle<H5Dclose>;
using Hdf5SpaceId = Hdf5Handle<H5Sclose>;
using Hdf5TypeId = Hdf5Handle<H5Tclose>;
using Hdf5PropertyId = Hdf5Handle<H5Pclose>;
using Hdf5AttributeId = Hdf5Handle<H5Aclose>;
using Hdf5ObjectId = Hdf5Handle<H5Oclose>;

// Turns off the library's error printing and plugin loading; call before any other function of it.
void hdf5_prepare();

// The library's description of its last failure: the innermost one on its error stack. Throws
// std::bad_alloc if that failure was a lack of memory, which says nothing about the file.
std::string hdf5_last_error();

// The library's native type for an element type.
template <class T> hid_t hdf5_native_type();

}  // namespace rk
