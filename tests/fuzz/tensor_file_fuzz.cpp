// libFuzzer target: any bytes as a file of tensors whose format is recognised by its content; HDF5
// has targets of its own.
#include "engine/base/error.h"
#include "tests/fuzz/look_through.h"

#include <span>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (text.find("\x89HDF\r\n\x1a\n") != std::string_view::npos) return 0;
    rk::look_through(rk::read_tensors({bytes.begin(), bytes.end()}, "fuzz"));
  } catch (const rk::InputError&) {
    // Refusing the file is the only failure allowed.
  }
  return 0;
}
