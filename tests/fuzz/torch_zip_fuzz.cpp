// libFuzzer target: PyTorch's zip archives. Checksums are not verified: most changed inputs would
// end there.
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
    // Refusing the file is the only failure allowed.
  }
  return 0;
}
