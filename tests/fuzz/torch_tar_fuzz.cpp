// libFuzzer target: PyTorch's tar archives.
#include "engine/base/error.h"
#include "tests/fuzz/look_through.h"
#include "weights/tensor_files/torch_file.h"

#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    rk::look_through(rk::read_torch_tar(bytes, nullptr, "fuzz"));
  } catch (const rk::InputError&) {
    // Refusing the file is the only failure allowed.
  }
  return 0;
}
