// What a command that may use a GPU refuses without one.
#pragma once

#include "engine/driver/device.h"

#include <string>

namespace rk {

// Throws UsageError if --precision is one that the CPU does not support.
void refuse_precision_without_gpu(const Device& device, const std::string& precision);

}  // namespace rk
