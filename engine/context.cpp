#include "engine/context.h"

#include "engine/onednn.h"

#include <sched.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace rk {
namespace {

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int cores = CPU_COUNT(&set);
  return cores > 0 ? cores : 1;
}

}  // namespace

Context::Context(int threads)
    : threads_(threads > 0 ? threads : usable_cores()), onednn_(std::make_unique<OneDnn>()) {
#if defined(_OPENMP)
  omp_set_num_threads(threads_);  // oneDNN asks OpenMP for its number of threads
#endif
}

Context::~Context() = default;

}  // namespace rk
