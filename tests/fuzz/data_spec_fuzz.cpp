// libFuzzer target: any text is a data set's specification that is written and read back the same,
// or a UsageError; its numbers are within what was asked for.
#include "data/spec.h"
#include "engine/base/error.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const rk::DataSpec spec = rk::parse_data_spec(text);
    if (rk::parse_data_spec(spec.text()).text() != spec.text()) std::abort();
    const double share = spec.number("val_classes", 0.5, 0, 1);
    const std::int64_t count = spec.integer("classes", 5, 1, 1000);
    if (!(share >= 0 && share <= 1) || count < 1 || count > 1000) std::abort();
    spec.list("categories");
  } catch (const rk::UsageError&) {
  }
  return 0;
}
