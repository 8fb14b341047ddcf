#include "tools/cli/flags/threads.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/usable_cores.h"

#include <fmt/format.h>

namespace rk {
namespace {

std::string may_use(const std::string& origin, int cores) {
  return fmt::format("{}: this process may use {} at a time", origin, counted(cores, "processor"));
}

}  // namespace

void check_threads(int threads, const std::string& origin) {
  const int cores = usable_cores();
  // On two processors a training step takes 2 times as long with 8 threads as with 2, 6 times with
  // 16, 20 times with 32.
  const int most = 8 * cores;
  if (threads > most) {
    fail<UsageError>(
        "{}, and more than {} threads do little but wait for one another; give "
        "--threads {}",
        may_use(origin, cores), most, cores);
  }
  note_threads(threads, origin);
}

void note_threads(int threads, const std::string& origin) {
  const int cores = usable_cores();
  if (threads <= cores) return;
  note(fmt::format("{}, and more threads than that wait for one another: slower than --threads {}",
                   may_use(origin, cores), cores));
}

}  // namespace rk
