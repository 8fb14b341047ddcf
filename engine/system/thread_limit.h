// Checks that the system allows this process its threads.
#pragma once

namespace rk {

// Throws DeviceError if `threads` threads, including the calling one, cannot run at the same time.
// Without this check OpenMP's runtime would end the program with a message of its own.
void require_threads(int threads);

}  // namespace rk
