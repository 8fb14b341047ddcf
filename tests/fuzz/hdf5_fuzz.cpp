// libFuzzer target: any bytes are an InputError or an HDF5 file that can be read as a whole, even
// if the library crashes or hangs in its child process.
#include "engine/base/error.h"
#include "tests/fuzz/short_parsers.h"
#include "weights/hdf5/file.h"

#include <cstdint>
#include <cstdlib>

namespace {

void read_all(const rk::Hdf5Reader& file) {
  for (const std::string& path : file.datasets("/")) {
    try {
      const rk::Hdf5Reader::Info info = file.info(path);
      std::size_t read = 0;
      switch (info.kind) {
        case rk::Hdf5Reader::Kind::kFloat: read = file.read<float>(path).size(); break;
        case rk::Hdf5Reader::Kind::kInteger: read = file.read<std::int64_t>(path).size(); break;
        case rk::Hdf5Reader::Kind::kText: read = file.read_text(path).size(); break;
      }
      if (static_cast<std::int64_t>(read) != info.elements()) std::abort();
    } catch (const rk::InputError&) {
    }
  }
  try {
    file.text_attribute("/", "arch");
    file.integer_attribute("/", "dim");
    file.number_attribute("/", "input_mean");
  } catch (const rk::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  rk::shorten_parsers();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read_all(rk::Hdf5Reader(std::as_bytes(std::span(data, size)), "fuzz"));
  } catch (const rk::InputError&) {
  }
  return 0;
}
