// libFuzzer target: any bytes, as they are or with a right footer behind them, are a checkpoint or
// an InputError. The first byte says which.
#include "engine/base/error.h"
#include "tests/fuzz/file_to_fuzz.h"
#include "weights/checkpoint.h"
#include "weights/sealed_file.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  if ((data[0] & 1U) != 0) rk::seal(file);
  try {
    const rk::Checkpoint checkpoint(rk::file_to_fuzz(file));
    if (checkpoint.run().step < 0 || checkpoint.sha256().size() != 64) std::abort();
    float values[4] = {};
    checkpoint.weight({"conv1.weight", {2, 2}}, values);
    if (!std::isfinite(values[0] + values[1])) std::abort();
    checkpoint.network();
  } catch (const rk::InputError&) {
  }
  return 0;
}
