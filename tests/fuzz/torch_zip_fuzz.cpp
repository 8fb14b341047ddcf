// libFuzzer target: zip archives of PyTorch's. Checksums are not looked at, where most of what is
// changed would end.
#include "engine/base/error.h"
#include "tests/fuzz/look_through.h"
#include "weights/tensor_files/torch_file.h"

#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const auto entries = rk::archive_entries(bytes, rk::ArchiveKind::kZip, false, "fuzz");
    rk::look_through(rk::read_torch_zip(entries, nullptr, "fuzz"));
  } catch (const rk::InputError&) {
    // One line that names the file, which is all that may happen.
  }
  return 0;
}
