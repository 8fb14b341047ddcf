// To be preloaded into a program: lets its system calls fail, or be interrupted, on demand.
//
//   RK_FAULTS  faults separated by ';', each "call,first,count,what,part". Counts the calls of that
//              name whose path holds `part`; those from number `first` (from 0) on, `count` of them
//              (0: all), fail with the errno `what`, or, if `what` is 's' and a number, first raise
//              that signal, unless in a forked process, and then go on. Calls: open (and fopen),
//              stat, read (pread), write (pwrite, ftruncate), fsync, rename, flock, mmap (but for
//              oneDNN's), memory (heap requests of 64 KiB or more; `part` is matched with the path
//              of the requesting library), pthread_create (but for OpenMP's), fork.
//   RK_COUNTS  a file: at exit, how many calls each fault counted, and how many failed or brought
//              a signal, in forked processes too (which go on with their own numbers); a line each
//   RK_TRACE   a file: each successful fsync and rename, a line each, with paths
//   RK_CLOCK   how many seconds the wall clock may jump, forth or back, at each reading
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t kLarge = std::size_t{64} << 10;

template <class F> F next(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

using Map = void* (*)(void*, std::size_t, int, int, int, off_t);

// A counter that forked processes add to as well.
std::atomic<long>* shared_counter() {
  void* memory = next<Map>("mmap")(nullptr, sizeof(std::atomic<long>), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::abort();
  return new (memory) std::atomic<long>(0);
}

struct Fault {
  std::string call, part;
  long first = 0, count = 0;
  int error = 0, signal = 0;
  std::atomic<long> seen = 0;
  std::atomic<long>* fired = shared_counter();
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

struct Faults {
  std::list<Fault> all = read_faults();
  const pid_t process = ::getpid();

  ~Faults();
};

// Set from before main() until exit; calls outside that time, or made by this file itself, do not
// count.
Faults* faults = nullptr;
thread_local bool inside = false;

Faults::~Faults() {
  faults = nullptr;
  const char* path = std::getenv("RK_COUNTS");
  if (path == nullptr || process != ::getpid()) return;
  std::string text;
  for (const Fault& fault : all) {
    text += std::to_string(fault.seen) + " " + std::to_string(*fault.fired) + "\n";
  }
  const int file = next<int (*)(const char*, int, ...)>("open")(
      path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (next<ssize_t (*)(int, const void*, std::size_t)>("write")(file, text.data(), text.size()) <
      0) {
    ::abort();
  }
}

const struct Start {
  Start() {
    inside = true;
    static Faults made;
    faults = &made;
    inside = false;
  }
} start;

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
};

// Sets errno and returns true if the call is to fail. `path` is a function because finding the path
// takes a call of its own.
template <class Path> bool fails(const char* call, const Path& path) {
  if (faults == nullptr || inside || faults->all.empty()) return false;
  const Inside guard;
  const int before = errno;
  for (Fault& fault : faults->all) {
    if (fault.call != call) continue;
    if (!fault.part.empty() && path().find(fault.part) == std::string::npos) continue;
    const long number = fault.seen++ - fault.first;
    if (number < 0 || (fault.count > 0 && number >= fault.count)) continue;
    if (fault.signal != 0 && ::getpid() != faults->process) continue;
    ++*fault.fired;
    if (fault.signal != 0) {
      ::kill(::getpid(), fault.signal);
      continue;
    }
    errno = fault.error;
    return true;
  }
  errno = before;
  return false;
}

bool fails(const char* call) {
  return fails(call, [] { return std::string(); });
}

bool fails_at(const char* call, const char* path) {
  return fails(call, [&] { return std::string(path); });
}

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

bool fails_on(const char* call, int descriptor) {
  return fails(call, [&] { return path_of(descriptor); });
}

using Open = int (*)(const char*, int, ...);
using OpenStream = std::FILE* (*)(const char*, const char*);

void trace(const std::string& line) {
  const char* path = std::getenv("RK_TRACE");
  if (path == nullptr) return;
  const Inside guard;
  static const int file = next<Open>("open")(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (::write(file, text.data(), text.size()) < 0) ::abort();
}

int open_next(const char* function, const char* path, int flags, mode_t mode) {
  return fails_at("open", path) ? -1 : next<Open>(function)(path, flags, mode);
}

mode_t mode_in(int flags, std::va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

// By how many seconds the wall clock is off this time: a sequence without repetition in 101
// readings, so that no duration is right by chance.
time_t jump() {
  static const char* seconds = std::getenv("RK_CLOCK");
  static std::atomic<long> times = 0;
  if (seconds == nullptr) return 0;
  return std::strtol(seconds, nullptr, 10) * (times++ * 37 % 101 - 50) / 50;
}

std::string library_of(const void* address) {
  Dl_info caller{};
  return dladdr(address, &caller) != 0 ? caller.dli_fname : "";
}

// Whether `address` lies in that library's code.
bool is_of(std::string_view library, const void* address) {
  return library_of(address).find(library) != std::string::npos;
}

bool memory_fails(std::size_t bytes, const void* who) {
  return bytes >= kLarge && fails("memory", [&] { return library_of(who); });
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

// std::ifstream opens files by either.
extern "C" std::FILE* fopen(const char* path, const char* mode) {
  return fails_at("open", path) ? nullptr : next<OpenStream>("fopen")(path, mode);
}
extern "C" std::FILE* fopen64(const char* path, const char* mode) {
  return fails_at("open", path) ? nullptr : next<OpenStream>("fopen64")(path, mode);
}

extern "C" int stat(const char* path, struct stat* into) noexcept {
  if (fails_at("stat", path)) return -1;
  return next<int (*)(const char*, struct stat*)>("stat")(path, into);
}

extern "C" ssize_t read(int descriptor, void* to, std::size_t bytes) {
  if (fails_on("read", descriptor)) return -1;
  return next<ssize_t (*)(int, void*, std::size_t)>("read")(descriptor, to, bytes);
}
extern "C" ssize_t pread(int descriptor, void* to, std::size_t bytes, off_t at) {
  if (fails_on("read", descriptor)) return -1;
  return next<ssize_t (*)(int, void*, std::size_t, off_t)>("pread")(descriptor, to, bytes, at);
}
extern "C" ssize_t pread64(int descriptor, void* to, std::size_t bytes, off64_t at) {
  if (fails_on("read", descriptor)) return -1;
  return next<ssize_t (*)(int, void*, std::size_t, off64_t)>("pread64")(descriptor, to, bytes, at);
}

extern "C" ssize_t write(int descriptor, const void* from, std::size_t bytes) {
  if (fails_on("write", descriptor)) return -1;
  return next<ssize_t (*)(int, const void*, std::size_t)>("write")(descriptor, from, bytes);
}
extern "C" ssize_t pwrite(int descriptor, const void* from, std::size_t bytes, off_t at) {
  if (fails_on("write", descriptor)) return -1;
  return next<ssize_t (*)(int, const void*, std::size_t, off_t)>("pwrite")(descriptor, from, bytes,
                                                                           at);
}
extern "C" int ftruncate(int descriptor, off_t bytes) noexcept {
  if (fails_on("write", descriptor)) return -1;
  return next<int (*)(int, off_t)>("ftruncate")(descriptor, bytes);
}

extern "C" int fsync(int descriptor) {
  if (fails_on("fsync", descriptor)) return -1;
  const int result = next<int (*)(int)>("fsync")(descriptor);
  if (result == 0) trace("fsync " + path_of(descriptor));
  return result;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (fails_at("rename", to)) return -1;
  const int result = next<int (*)(const char*, const char*)>("rename")(from, to);
  if (result == 0) trace(std::string("rename ") + from + " " + to);
  return result;
}

extern "C" int flock(int descriptor, int operation) noexcept {
  if (fails_on("flock", descriptor)) return -1;
  return next<int (*)(int, int)>("flock")(descriptor, operation);
}

extern "C" void* mmap(void* at, std::size_t bytes, int protection, int flags, int descriptor,
                      off_t offset) noexcept {
  // oneDNN maps memory for its generated code and crashes if a mapping fails.
  if (!is_of("libdnnl", __builtin_return_address(0)) && fails("mmap")) return MAP_FAILED;
  return next<Map>("mmap")(at, bytes, protection, flags, descriptor, offset);
}

// malloc() and calloc() are left alone: dlsym() itself needs them.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  if (memory_fails(bytes, __builtin_return_address(0))) return nullptr;
  return next<void* (*)(std::size_t, std::size_t)>("aligned_alloc")(alignment, bytes);
}
extern "C" int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) noexcept {
  if (memory_fails(bytes, __builtin_return_address(0))) return ENOMEM;
  return next<int (*)(void**, std::size_t, std::size_t)>("posix_memalign")(to, alignment, bytes);
}
#if !RK_SANITIZED_PROGRAMS  // a sanitizer has a heap of its own
void* operator new(std::size_t bytes) {
  if (memory_fails(bytes, __builtin_return_address(0))) throw std::bad_alloc();
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*work)(void*), void* argument) noexcept {
  // OpenMP's runtime ends the program if it gets no thread.
  if (!is_of("libgomp", __builtin_return_address(0)) && fails("pthread_create")) return errno;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return next<Create>("pthread_create")(thread, attributes, work, argument);
}

extern "C" pid_t fork() noexcept {
  if (fails("fork")) return -1;
  return next<pid_t (*)()>("fork")();
}

extern "C" int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const int result = next<int (*)(clockid_t, struct timespec*)>("clock_gettime")(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += jump();
  return result;
}
extern "C" time_t time(time_t* now) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}
extern "C" int gettimeofday(struct timeval* now, void* zone) noexcept {
  const int result = next<int (*)(struct timeval*, void*)>("gettimeofday")(now, zone);
  if (result == 0) now->tv_sec += jump();
  return result;
}
