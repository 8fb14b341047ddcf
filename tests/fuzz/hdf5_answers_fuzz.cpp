// libFuzzer target: whatever a parser answers, its reader gets what it asked for or throws
// InputError, and so do embeddings that are read of it. The bytes are the answers, each behind its
// length in two bytes; behind a first byte that says who reads.
#include "engine/base/error.h"
#include "tests/fuzz/look_at_embeddings.h"
#include "tests/support/said_answers.h"
#include "weights/hdf5/file.h"

#include <algorithm>
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
  const auto say = [&](std::span<const std::byte>) {
    if (left.size() < 2) return std::vector<std::byte>();
    const std::size_t length =
        std::to_integer<std::size_t>(left[0]) + 256 * std::to_integer<std::size_t>(left[1]);
    const auto said = left.subspan(2, std::min(length, left.size() - 2));
    left = left.subspan(2 + said.size());
    return std::vector<std::byte>(said.begin(), said.end());
  };
  try {
    const rk::Hdf5Reader file("fuzz", std::make_unique<rk::SaidAnswers>(say));
    if (data[0] == 0) {
      read_all(file);
    } else {
      rk::look_at_embeddings(file);
    }
  } catch (const rk::InputError&) {
  }
  return 0;
}
