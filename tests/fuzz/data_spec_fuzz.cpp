// libFuzzer target: any text is a UsageError or a data set's specification that survives being
// written and read back; its numbers lie within the limits that the caller gives.
#include "data/spec.h"
#include "engine/base/error.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const bool path_first : {true, false}) {
      const rk::DataSpec spec = rk::parse_data_spec(text, path_first);
      if (rk::parse_data_spec(spec.text(), path_first).text() != spec.text()) std::abort();
      const double share = spec.number("val_classes", 0.5, 0, 1);
      const std::int64_t count = spec.integer("classes", 5, 1, 1000);
      if (!(share >= 0 && share <= 1) || count < 1 || count > 1000) std::abort();
      spec.list("categories");
    }
  } catch (const rk::UsageError&) {
  }
  return 0;
}
