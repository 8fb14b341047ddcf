// Tells a graph that a library refuses from a GPU that has failed.
#pragma once

#include "engine/base/error.h"
#include "engine/device/context.h"

#include <string>

namespace rk {

// Runs `work`, which is for `name`. Throws DeviceError if it is refused, and DeviceFault, with the
// name, if the GPU has failed: then libraries refuse everything, under codes of their own, and only
// waiting tells why.
template <class Work>
auto attempt(const Context& context, const std::string& name, const Work& work) {
  try {
    try {
      return work();
    } catch (const DeviceError&) {
      context.synchronize();
      throw;
    }
  } catch (const DeviceFault& error) {
    fail<DeviceFault>("{}: {}", name, error.what());
  }
}

}  // namespace rk
