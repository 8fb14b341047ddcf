// libFuzzer target: whatever a parser answers, its reader gets what it asked for or throws
// InputError, and so does reading embeddings through that reader. Covers what embeddings_fuzz does
// except for the library itself, some hundred times faster. The first byte chooses between the two.
#include "engine/base/error.h"
#include "tests/fuzz/answers_to_fuzz.h"
#include "tests/fuzz/look_at_embeddings.h"

#include <cstdint>

namespace {

void read_all(const rk::Hdf5Reader& file) {
  for (const std::string& path : file.datasets("/")) {
    const rk::Hdf5Reader::Info info = file.info(path);
    if (info.elements() > 1 << 20) continue;  // allowed, but slow
    if (info.kind == rk::Hdf5Reader::Kind::kText) {
      file.read_text(path);
    } else {
      file.read<double>(path);
    }
  }
  file.text_attribute("/", "arch");
  file.integer_attribute("/", "dim");
  file.number_attribute("/", "input_mean");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::span<const std::byte> left = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    const rk::Hdf5Reader file =
        rk::reader_of([&](std::span<const std::byte>) { return rk::next_answer(left); });
    if (data[0] == 0) {
      read_all(file);
    } else {
      rk::look_at_embeddings(file);
    }
  } catch (const rk::InputError&) {
  }
  return 0;
}
