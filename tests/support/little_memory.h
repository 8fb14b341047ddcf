// While it lives, this process gets no more than so many bytes beside those that it has. Not under
// sanitizers, which reserve more addresses than any limit.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace rk {

class LittleMemory {
 public:
  explicit LittleMemory(std::int64_t bytes) {
    ::getrlimit(RLIMIT_AS, &before_);
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;  // its addresses, in pages
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + bytes);
    ::setrlimit(RLIMIT_AS, &less);
  }
  ~LittleMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

}  // namespace rk
