// libFuzzer target: any text is a UsageError or names a loss whose complete specification, all
// parameters spelled out, survives being written and read back.
#include "engine/base/error.h"
#include "losses/registry.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const rk::LossSpec spec = rk::parse_loss(text);
    const std::string complete = spec.text();
    if (rk::parse_loss(complete).text() != complete) std::abort();
    if (spec.entry->make_float(spec.values) == nullptr) std::abort();
  } catch (const rk::UsageError&) {
  }
  return 0;
}
