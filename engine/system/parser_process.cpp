#include "engine/system/parser_process.h"

#include "engine/base/error.h"
#include "engine/base/sanitizers.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

namespace rk {
namespace {

constexpr int kNoLimits = 97;  // exit code of a child that could not be limited
constexpr int kChannel = 3;    // its descriptor in the child
constexpr std::size_t kMaxRefusal = 4096;

struct Question {
  std::uint64_t bytes;
  ParserLimits limits;
};

enum class Outcome : std::uint64_t {
  kDone,
  kRefused,
  kOutOfMemory,         // more than a file may take
  kOutOfCallersMemory,  // more than this program itself may take, which is less
};

struct Answered {
  Outcome outcome;
  std::uint64_t bytes;
};

std::atomic<void (*)()> interruption = nullptr;

// The memory this process has mapped: the smallest limit under which it can map one page more.
std::uint64_t mapped_bytes(rlim_t most) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  std::uint64_t low = 0, high = std::min<std::uint64_t>(most, std::uint64_t{1} << 57);
  while (high - low > page) {
    const std::uint64_t middle = low + (high - low) / 2;
    limit.rlim_cur = middle;
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 0;
    void* one = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one != MAP_FAILED) ::munmap(one, page);
    (one != MAP_FAILED ? high : low) = middle;
  }
  return high;
}

// Limits the address space; the limit inherited from the caller holds as well.
class MemoryLimit {
 public:
  bool set(std::uint64_t bytes) {
    if (mapped_ == 0) {
      if (::getrlimit(RLIMIT_AS, &inherited_) != 0) return false;
      mapped_ = mapped_bytes(inherited_.rlim_cur);
    }
    rlimit limit = inherited_;
    callers_ = inherited_.rlim_cur < mapped_ + bytes;
    limit.rlim_cur = callers_ ? inherited_.rlim_cur : mapped_ + bytes;
    return mapped_ != 0 && ::setrlimit(RLIMIT_AS, &limit) == 0;
  }
  bool is_callers() const { return callers_; }

 private:
  rlimit inherited_{};
  std::uint64_t mapped_ = 0;
  bool callers_ = false;
};

bool limit_to(decltype(RLIMIT_CPU) resource, std::uint64_t soft, std::uint64_t hard) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return false;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, hard);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, soft);
  return ::setrlimit(resource, &limit) == 0;
}

// A crash must end the child; signals from people or a batch system are for the parent alone.
void reset_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  for (int signal = 1; signal < 32; ++signal) {
    const bool for_parent = signal == SIGINT || signal == SIGTERM || signal == SIGHUP ||
                            signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGQUIT ||
                            signal == SIGPIPE;
    action.sa_handler = for_parent ? SIG_IGN : SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Standard input stays open, because a file may be given as /dev/stdin.
void close_descriptors(int channel) {
  if (channel != kChannel) ::dup2(channel, kChannel);
  if (::close_range(kChannel + 1, ~0U, 0) != 0) {  // a kernel before 5.9
    const auto most = static_cast<int>(std::min<long>(::sysconf(_SC_OPEN_MAX), 1 << 16));
    for (int each = kChannel + 1; each < most; ++each) ::close(each);
  }
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int each : {STDOUT_FILENO, STDERR_FILENO}) {
    if (each == STDERR_FILENO && RK_SANITIZED) continue;
    if (nowhere < 0 || ::dup2(nowhere, each) < 0) ::close(each);
  }
  if (nowhere > kChannel) ::close(nowhere);
}

// Blocks signals during the fork: until the child has reset its handlers, a handler of the parent's
// would run in both processes.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void set_parser_interruption(void (*check)()) { interruption = check; }

ParserProcess::ParserProcess(std::string file, std::string parser, const ParserLimits& most,
                             std::uint64_t wait_seconds, std::size_t slot_bytes, const Serve& serve)
    : file_(std::move(file)),
      parser_(std::move(parser)),
      most_(most),
      limits_(most),
      wait_seconds_(wait_seconds),
      slot_bytes_(slot_bytes) {
  void* slots = ::mmap(nullptr, kSlots * slot_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (slots == MAP_FAILED) throw std::bad_alloc();
  slots_ = static_cast<std::byte*>(slots);
  std::array<int, 2> ends{};
  const bool joined = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0;
  int error = errno;
  if (joined) {
    const pid_t parent = ::getpid();
    const SignalsHeld held;
    child_ = ::fork();
    error = errno;
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(kNoLimits);  // the parent died before prctl()
      this->serve(ends[1], serve);
    }
  }
  if (joined) ::close(ends[1]);
  if (child_ < 0) {
    if (joined) ::close(ends[0]);
    ::munmap(slots_, kSlots * slot_bytes_);
    fail<SystemError>(
        "{}: is not read: a process for {} cannot be started ({}); raise the limits on processes, "
        "open files and memory",
        file_, parser_, ::strerror(error));
  }
  channel_ = ends[0];
}

ParserProcess::~ParserProcess() {
  end();
  ::close(channel_);
  ::munmap(slots_, kSlots * slot_bytes_);
}

void ParserProcess::end() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

void ParserProcess::serve(int channel, const Serve& serve) const {
  reset_signals();
  close_descriptors(channel);
  ::prctl(PR_SET_DUMPABLE, 0);
  MemoryLimit memory;
  // The hard limit is for a child that survives the soft limit's signal.
  if (!limit_to(RLIMIT_CORE, 0, 0) || !limit_to(RLIMIT_FSIZE, 0, 0) ||
      !limit_to(RLIMIT_NPROC, 0, 0) || !limit_to(RLIMIT_NOFILE, 16, 16) ||
      !limit_to(RLIMIT_CPU, most_.cpu_seconds, most_.cpu_seconds + 2) ||
      !memory.set(most_.memory_bytes)) {
    ::_exit(kNoLimits);
  }
  ParserLimits present = most_;
  for (std::size_t at = 0;; at = (at + 1) % kSlots) {
    const std::span<std::byte> slot(slots_ + at * slot_bytes_, slot_bytes_);
    Question question{};
    ssize_t got = 0;
    do {
      got = ::recv(kChannel, &question, sizeof question, 0);
    } while (got < 0 && errno == EINTR);
    if (got != sizeof question) ::_exit(0);  // the parent asks no more
    if (question.limits.memory_bytes != present.memory_bytes &&
        !memory.set(question.limits.memory_bytes)) {
      ::_exit(kNoLimits);
    }
    if (question.limits.cpu_seconds != present.cpu_seconds &&
        !limit_to(RLIMIT_CPU, question.limits.cpu_seconds, most_.cpu_seconds + 2)) {
      ::_exit(kNoLimits);
    }
    present = question.limits;
    Answered answered{Outcome::kDone, 0};
    const auto refuse = [&](std::string_view words) {
      answered = {Outcome::kRefused, std::min({words.size(), kMaxRefusal, slot.size()})};
      std::memcpy(slot.data(), words.data(), answered.bytes);
    };
    try {
      answered.bytes = serve(slot, question.bytes);
    } catch (const std::bad_alloc&) {
      answered = {memory.is_callers() ? Outcome::kOutOfCallersMemory : Outcome::kOutOfMemory, 0};
    } catch (const InputError& error) {
      refuse(error.what());
    } catch (const std::exception& error) {
      refuse(file_ + ": " + error.what() + "; it is damaged, copy it again");
    }
    if (::send(kChannel, &answered, sizeof answered, MSG_NOSIGNAL) != sizeof answered) ::_exit(0);
  }
}

void ParserProcess::ask(std::span<const std::byte> question, const ParserLimits& limits) {
  expect(question.size() <= slot_bytes_ && asked_ - answered_ < kSlots,
         "[parser] expected at most {} questions of {} bytes, got {} bytes", kSlots, slot_bytes_,
         question.size());
  std::memcpy(slots_ + (asked_ % kSlots) * slot_bytes_, question.data(), question.size());
  ++asked_;
  if (!death_.empty()) return;
  limits_ = {std::min(limits.memory_bytes, most_.memory_bytes),
             std::min(limits.cpu_seconds, most_.cpu_seconds)};
  const Question message{question.size(), limits_};
  // Two short messages always fit. If the child is gone, answer() notices.
  ssize_t sent = 0;
  do {
    sent = ::send(channel_, &message, sizeof message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
}

std::span<const std::byte> ParserProcess::answer() {
  using Clock = std::chrono::steady_clock;
  expect(asked_ > answered_, "[parser] expected a question before its answer");
  // A failure counts as an answer, so that later questions find a slot.
  const std::byte* slot = slots_ + (answered_++ % kSlots) * slot_bytes_;
  if (!death_.empty()) throw InputError(death_);
  constexpr auto kStep = std::chrono::milliseconds(100);
  // Each step counts at most once: a program that was stopped and resumed was not waiting
  // meanwhile.
  Clock::duration waited{};
  for (;;) {
    if (void (*check)() = interruption.load(); check != nullptr) check();
    const Clock::time_point start = Clock::now();
    pollfd ready{channel_, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(kStep.count())) > 0) break;
    waited += std::min<Clock::duration>(Clock::now() - start, kStep);
    if (waited < std::chrono::seconds(wait_seconds_)) continue;
    end();
    death_ = fmt::format(
        "{}: {} gives no answer for {} s; the file is damaged, or its disk or network does not "
        "answer",
        file_, parser_, wait_seconds_);
    throw InputError(death_);
  }
  Answered answered{};
  ssize_t got = 0;
  do {
    got = ::recv(channel_, &answered, sizeof answered, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof answered) {
    death_ = find_death();
    throw InputError(death_);
  }
  if (answered.outcome == Outcome::kOutOfMemory) {
    fail<InputError>(
        "{}: {} needs more memory for it than {} MiB; it is damaged or made to exhaust memory",
        file_, parser_, limits_.memory_bytes >> 20);
  }
  if (answered.outcome == Outcome::kOutOfCallersMemory) {
    fail<SystemError>(
        "{}: {} needs more memory for it than this program may have; raise the limit (ulimit -v)",
        file_, parser_);
  }
  if (answered.bytes > slot_bytes_ || answered.outcome > Outcome::kOutOfCallersMemory) {
    fail<InputError>("{}: {} does not answer as it should; the file is malformed", file_, parser_);
  }
  const std::span<const std::byte> bytes(slot, answered.bytes);
  if (answered.outcome == Outcome::kDone) return bytes;
  throw InputError(std::string(text_of(bytes)));
}

std::string ParserProcess::find_death() {
  int status = 0;
  pid_t got = -1;
  while (child_ >= 0 && (got = ::waitpid(child_, &status, 0)) < 0 && errno == EINTR) {
  }
  child_ = -1;
  if (got >= 0 && WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGXCPU) {
      return fmt::format(
          "{}: keeps {} busy for more than {} s; it is damaged or made to hang, copy it again",
          file_, parser_, limits_.cpu_seconds);
    }
    if (signal == SIGKILL) {
      return fmt::format(
          "{}: the process of {} was killed (signal 9): the system was short of memory, or someone "
          "ended it",
          file_, parser_);
    }
    return fmt::format(
        "{}: crashes {} (signal {}, {}); it is malformed, copy it again or make it anew", file_,
        parser_, signal, ::strsignal(signal));
  }
  if (got >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == kNoLimits) {
    return fmt::format("{}: is not read: no limits can be set for {}; see what this system forbids",
                       file_, parser_);
  }
  return fmt::format("{}: ends {} without a word; it is malformed, copy it again or make it anew",
                     file_, parser_);
}

}  // namespace rk
