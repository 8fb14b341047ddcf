// For targets that parse each input in a process of its own (engine/system/parser_process.h).
#pragma once

#include "engine/base/sanitizers.h"
#include "weights/hdf5/handle.h"

#include <pthread.h>
#include <sys/time.h>

namespace rk {

// The HDF5 library is set up once, here, and not in each process; and a process ends by SIGPROF
// after five times what a good file of this size takes of the processor, where a program allows
// seconds: one input in thirty lets the library go round in circles, and those took nearly all of
// the time.
inline void shorten_parsers() {
  hdf5_prepare();
  pthread_atfork(nullptr, nullptr, [] {
    itimerval limit{};
    limit.it_value.tv_usec = RK_SANITIZED ? 60'000 : 5'000;
    setitimer(ITIMER_PROF, &limit, nullptr);
  });
}

}  // namespace rk
