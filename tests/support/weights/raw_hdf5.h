// Files that the HDF5 library writes by itself, with what Hdf5Writer does not write.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <string>
#include <vector>

namespace rk {

// Makes a file that `fill` fills; returns its path.
template <class F> std::string made_hdf5(const std::string& path, F&& fill) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  fill(file);
  H5Fclose(file);
  return path;
}

// Writes a data set of `type` and these sides; without `values`, only that there is one.
inline void write_set(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& sides,
                      const void* values, hid_t creation = H5P_DEFAULT) {
  const hid_t space = H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr);
  const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  ASSERT_GE(set, 0);
  if (values != nullptr) {
    EXPECT_GE(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
  }
  H5Dclose(set);
  H5Sclose(space);
}

}  // namespace rk
