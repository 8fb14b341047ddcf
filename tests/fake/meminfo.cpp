// To be preloaded into a program: lets it read the file RK_FAKE_MEMINFO_FILE as /proc/meminfo.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Open = std::FILE* (*)(const char*, const char*);

std::FILE* open_next(const char* function, const char* path, const char* mode) {
  const char* instead = std::getenv("RK_FAKE_MEMINFO_FILE");
  const bool asked = instead != nullptr && std::strcmp(path, "/proc/meminfo") == 0;
  const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, function));
  return next(asked ? instead : path, mode);
}

}  // namespace

// std::ifstream opens files by either.
extern "C" std::FILE* fopen(const char* path, const char* mode) {
  return open_next("fopen", path, mode);
}
extern "C" std::FILE* fopen64(const char* path, const char* mode) {
  return open_next("fopen64", path, mode);
}
