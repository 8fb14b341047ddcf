// What the HDF5 library says it failed of: the innermost of its errors, and a lack of memory as
// that, since it says nothing about the file that was read.
#include "weights/hdf5/handle.h"

#include <gtest/gtest.h>

#include <new>

namespace rk {
namespace {

class Hdf5Error : public testing::Test {
 protected:
  void SetUp() override {
    hdf5_prepare();
    H5Eclear2(H5E_DEFAULT);
  }
  // As the library does on its way out of a call that failed: the cause is pushed first.
  static void push(hid_t minor, const char* text) {
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, minor, "%s",
             text);
  }
};

TEST_F(Hdf5Error, IsTheInnermost) {
  EXPECT_EQ(hdf5_last_error(), "the HDF5 library gave no reason");
  push(H5E_BADVALUE, "wrong signature");
  push(H5E_CANTOPENFILE, "unable to open file");
  EXPECT_EQ(hdf5_last_error(), "wrong signature");
}

TEST_F(Hdf5Error, WantOfMemoryIsThrownAsThat) {
  push(H5E_NOSPACE, "memory allocation failed for raw data chunk");
  push(H5E_READERROR, "can't read data");
  EXPECT_THROW(hdf5_last_error(), std::bad_alloc);
}

TEST_F(Hdf5Error, OnlyWantOfMemoryIs) {
  push(H5E_NOSPACE, "file allocation failed");
  EXPECT_EQ(hdf5_last_error(), "file allocation failed");
  H5Eclear2(H5E_DEFAULT);
  push(H5E_BADVALUE, "memory datatype does not fit");
  push(H5E_NOSPACE, "memory allocation failed");  // of what is done about the error
  EXPECT_EQ(hdf5_last_error(), "memory datatype does not fit");
}

}  // namespace
}  // namespace rk
