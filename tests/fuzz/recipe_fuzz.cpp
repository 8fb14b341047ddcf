// libFuzzer target: any text is a recipe whose settings can be applied, or an error with a message.
#include "engine/base/error.h"
#include "tests/fuzz/file_to_fuzz.h"
#include "tools/train/settings/train_flags.h"
#include "tools/train/settings/train_settings.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto settings = rk::read_recipe(rk::file_to_fuzz(std::as_bytes(std::span(data, size))));
    rk::Flags flags;
    rk::SettingTable table;
    rk::TrainSettings values;
    rk::add_train_options(flags, table, values);
    rk::apply_settings(table, settings, "fuzz");
    rk::resolve(values);
    table.toml();
  } catch (const rk::Error& error) {
    if (std::string_view(error.what()).empty()) std::abort();
  }
  return 0;
}
