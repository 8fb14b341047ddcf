#include "engine/system/thread_limit.h"

#include "engine/base/error.h"

#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace rk {

void require_threads(int threads) {
  std::vector<std::thread> others;
  std::mutex open;
  std::string reason;
  {
    // The threads wait until all have started, so that they exist at the same time.
    const std::lock_guard closed(open);
    try {
      others.reserve(static_cast<std::size_t>(threads));
      while (static_cast<int>(others.size()) + 1 < threads) {
        others.emplace_back([&open] { const std::lock_guard wait(open); });
      }
    } catch (const std::system_error& error) {
      reason = error.code().message();
    } catch (const std::bad_alloc&) {
      reason = "out of memory";
    }
  }
  for (std::thread& thread : others) thread.join();
  if (reason.empty()) return;
  fail<DeviceError>(
      "only {} of {} threads can be started ({}); lower --threads, or raise the limit "
      "(ulimit -u)",
      others.size() + 1, threads, reason);
}

}  // namespace rk
