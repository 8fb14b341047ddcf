// For fuzz targets that parse each input in a child process (engine/system/parser_process.h).
#pragma once

#include "engine/base/sanitizers.h"
#include "weights/hdf5/handle.h"

#include <pthread.h>
#include <sys/time.h>

namespace rk {

// Sets up the HDF5 library once, not in each process, and lets SIGPROF end a process after five
// times the processor time that a good file of this size takes (a program allows seconds): one
// input in thirty makes the library loop for ever, and those took nearly all of the time.
inline void shorten_parsers() {
  hdf5_prepare();
  pthread_atfork(nullptr, nullptr, [] {
    itimerval limit{};
    limit.it_value.tv_usec = RK_SANITIZED ? 60'000 : 5'000;
    setitimer(ITIMER_PROF, &limit, nullptr);
  });
}

}  // namespace rk
