// libFuzzer target: any text in place of a checkpoint's settings is an error with a message or JSON
// that survives being written and read back and can be applied.
#include "engine/base/error.h"
#include "tools/cli/parse_json.h"
#include "tools/train/settings/train_flags.h"
#include "tools/train/settings/train_settings.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto settings = rk::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
    const std::string text = settings.dump();
    if (rk::parse_json(text, "fuzz").dump() != text) std::abort();
    if (!settings.is_object()) return 0;
    rk::Flags flags;
    rk::SettingTable table;
    rk::TrainSettings values;
    rk::add_train_options(flags, table, values);
    rk::apply_settings(table, settings, "fuzz");
    rk::resolve(values);
    if (table.values().dump().empty()) std::abort();
  } catch (const rk::Error& error) {
    if (std::string_view(error.what()).empty()) std::abort();
  }
  return 0;
}
