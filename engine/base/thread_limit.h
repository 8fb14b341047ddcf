// Whether the system lets this process have its threads.
#pragma once

namespace rk {

// DeviceError where `threads` at a time, the calling one among them, cannot be had: OpenMP's
// runtime would end the program in its own words.
void require_threads(int threads);

}  // namespace rk
