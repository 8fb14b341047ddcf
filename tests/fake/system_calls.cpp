// System calls that fail or are interrupted on demand, for programs that this is preloaded into.
//
//   RK_FAULTS  faults between ';', each "call,first,count,what,part": of the calls of that name
//              whose path holds `part`, number `first` (from 0) and the `count` - 1 behind it
//              (0: all) fail with the errno `what`, or get the signal `what` (a number after 's')
//              and go on. Calls: open fsync rename flock pthread_create.
//   RK_TRACE   a file: every fsync and rename that is done, a line each, with paths
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <list>
#include <sstream>
#include <string>

namespace {

struct Fault {
  std::string call, part;
  long first = 0, count = 0;
  int error = 0, signal = 0;
  std::atomic<long> seen = 0;
};

std::list<Fault> read_faults() {
  std::list<Fault> faults;
  const char* text = std::getenv("RK_FAULTS");
  std::istringstream all(text != nullptr ? text : "");
  for (std::string one; std::getline(all, one, ';');) {
    std::istringstream in(one);
    Fault& fault = faults.emplace_back();
    std::string first, count, what;
    std::getline(in, fault.call, ',');
    std::getline(in, first, ',');
    std::getline(in, count, ',');
    std::getline(in, what, ',');
    std::getline(in, fault.part);
    fault.first = std::stol(first);
    fault.count = std::stol(count);
    (what[0] == 's' ? fault.signal : fault.error) =
        std::stoi(what[0] == 's' ? what.substr(1) : what);
  }
  return faults;
}

// Sets errno and returns true where the call is to fail.
bool fails(const char* call, const std::string& path) {
  static std::list<Fault> faults = read_faults();
  for (Fault& fault : faults) {
    if (fault.call != call || path.find(fault.part) == std::string::npos) continue;
    const long number = fault.seen++ - fault.first;
    if (number < 0 || (fault.count > 0 && number >= fault.count)) continue;
    if (fault.signal != 0) {
      ::kill(::getpid(), fault.signal);
      continue;
    }
    errno = fault.error;
    return true;
  }
  return false;
}

template <class F> F next(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

using Open = int (*)(const char*, int, ...);

void trace(const std::string& line) {
  const char* path = std::getenv("RK_TRACE");
  if (path == nullptr) return;
  static const int file = next<Open>("open")(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (::write(file, text.data(), text.size()) < 0) ::abort();
}

int open_next(const char* function, const char* path, int flags, mode_t mode) {
  return fails("open", path) ? -1 : next<Open>(function)(path, flags, mode);
}

mode_t mode_in(int flags, std::va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_next("open", path, flags, mode);
}

extern "C" int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_next("open64", path, flags, mode);
}

extern "C" int fsync(int descriptor) {
  const std::string path = path_of(descriptor);
  if (fails("fsync", path)) return -1;
  const int result = next<int (*)(int)>("fsync")(descriptor);
  if (result == 0) trace("fsync " + path);
  return result;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (fails("rename", to)) return -1;
  const int result = next<int (*)(const char*, const char*)>("rename")(from, to);
  if (result == 0) trace(std::string("rename ") + from + " " + to);
  return result;
}

extern "C" int flock(int descriptor, int operation) noexcept {
  if (fails("flock", path_of(descriptor))) return -1;
  return next<int (*)(int, int)>("flock")(descriptor, operation);
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*work)(void*), void* argument) noexcept {
  if (fails("pthread_create", "")) return errno;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return next<Create>("pthread_create")(thread, attributes, work, argument);
}
