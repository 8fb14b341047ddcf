// libFuzzer target: a stored chunk unfolds to exactly its size or is refused. The first bytes give
// its size, its filters and which of them were skipped.
#include "weights/hdf5/chunk.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider bytes(data, size);
  const auto expected = bytes.ConsumeIntegralInRange<std::size_t>(0, 1 << 16);
  std::vector<rk::Hdf5Filter> filters(bytes.ConsumeIntegralInRange<std::size_t>(0, 4));
  for (rk::Hdf5Filter& filter : filters) {
    filter.id = bytes.ConsumeBool() ? H5Z_FILTER_DEFLATE : H5Z_FILTER_SHUFFLE;
    filter.element_bytes = bytes.ConsumeIntegral<std::uint8_t>();
  }
  const auto skipped = bytes.ConsumeIntegral<std::uint8_t>();
  try {
    const std::vector<std::byte> out =
        rk::unfold_chunk(bytes.ConsumeRemainingBytes<std::byte>(), filters, skipped, expected);
    if (out.size() != expected) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
