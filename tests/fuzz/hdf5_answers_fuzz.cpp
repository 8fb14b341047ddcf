// libFuzzer target: whatever a parser answers, its reader gets what it asked for or throws
// InputError. The bytes are the answers, each behind its length in two bytes.
#include "engine/base/error.h"
#include "weights/hdf5/file.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t at = 0;
  const auto serve = [&](std::span<std::byte> slot, std::size_t) {
    if (size - at < 2) return std::size_t{0};
    const std::size_t length = data[at] + std::size_t{256} * data[at + 1];
    at += 2;
    const std::size_t there = std::min(length, size - at);
    std::memcpy(slot.data(), data + at, there);
    at += there;
    return length == 65535 ? slot.size() + 1 : length;
  };
  try {
    const rk::Hdf5Reader file("fuzz", serve);
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
  } catch (const rk::InputError&) {
  }
  return 0;
}
