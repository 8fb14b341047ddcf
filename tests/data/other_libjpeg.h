// A libjpeg that is not the one whose header was compiled in. Of each test binary one file alone
// may include this.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>

namespace rk {

// While it lives, the library is called as by a program compiled for a version that is `newer` by
// so much, and whose struct is `larger` by so many bytes.
class OtherLibjpeg {
 public:
  explicit OtherLibjpeg(int newer, std::size_t larger = 0) {
    newer_ = newer;
    larger_ = larger;
  }
  ~OtherLibjpeg() {
    newer_ = 0;
    larger_ = 0;
  }
  OtherLibjpeg(const OtherLibjpeg&) = delete;
  OtherLibjpeg& operator=(const OtherLibjpeg&) = delete;
  static int version(int version) { return version + newer_; }
  static std::size_t bytes(std::size_t bytes) { return bytes + larger_; }

 private:
  inline static int newer_ = 0;
  inline static std::size_t larger_ = 0;
};

}  // namespace rk

// The decoder calls this one, not the library's.
// NOLINTNEXTLINE(misc-definitions-in-headers): one file of a binary includes this.
void jpeg_CreateDecompress(j_decompress_ptr info, int version, std::size_t bytes) {
  const auto library =
      reinterpret_cast<decltype(&jpeg_CreateDecompress)>(dlsym(RTLD_NEXT, "jpeg_CreateDecompress"));
  library(info, rk::OtherLibjpeg::version(version), rk::OtherLibjpeg::bytes(bytes));
}
