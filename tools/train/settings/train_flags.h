// The flags of `train`.
#pragma once

#include "tools/cli/cli.h"
#include "tools/train/settings/setting_table.h"
#include "tools/train/settings/train_settings.h"

namespace rk {

// Adds the flags in groups. `recipe`, `out`, `resume` and `allow_changed_data` are not settings of
// a run and not in the table.
void add_train_options(Flags& flags, SettingTable& table, TrainSettings& settings);

}  // namespace rk
