// libFuzzer target: any bytes are an InputError or a plan file that survives being written and read
// back.
#include "engine/base/error.h"
#include "layers/graphs/plans.h"
#include "tests/fuzz/file_to_fuzz.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path = rk::file_to_fuzz(std::as_bytes(std::span(data, size)));
  try {
    const rk::GpuPlans plans = rk::GpuPlans::read(path);
    if (!plans.engine("conv").empty() && plans.empty()) std::abort();
    const std::string text = plans.text();
    const std::string written = rk::file_to_fuzz(std::as_bytes(std::span(text)));
    if (rk::GpuPlans::read(written).text() != text) std::abort();
  } catch (const rk::InputError&) {
  }
  return 0;
}
