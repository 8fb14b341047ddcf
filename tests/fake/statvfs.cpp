// To be preloaded into a program: every disk has RK_FAKE_FREE_BYTES free.
#include <sys/statvfs.h>

#include <cstdlib>

extern "C" int statvfs(const char* /*path*/, struct statvfs* status) noexcept {
  const char* bytes = std::getenv("RK_FAKE_FREE_BYTES");
  *status = {};
  status->f_frsize = 1;
  status->f_bavail = bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : 0;
  return 0;
}
