// libFuzzer target: any bytes are an InputError or embeddings whose parts have matching sizes.
#include "engine/base/error.h"
#include "tests/fuzz/look_at_embeddings.h"
#include "tests/fuzz/short_parsers.h"

#include <cstdint>

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  rk::shorten_parsers();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    rk::look_at_embeddings(rk::Hdf5Reader(std::as_bytes(std::span(data, size)), "fuzz"));
  } catch (const rk::InputError&) {
  }
  return 0;
}
