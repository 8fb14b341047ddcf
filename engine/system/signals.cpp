#include "engine/system/signals.h"

#include "engine/base/integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace rk {
namespace {

// Of two interrupts: what comes sooner is one key press that was sent to the program twice, by the
// terminal and by whatever started it; what comes later is answered like the first.
constexpr int kLeastMilliseconds = 300, kMostMilliseconds = 5000;
constexpr int kClockMilliseconds = 1'000'000'000;  // the clock begins again after so many

// The C++ standard allows a signal handler to write to these.
volatile sig_atomic_t signal_received = 0;
volatile sig_atomic_t interrupt_milliseconds = 0;
volatile sig_atomic_t interrupts = 0;

// Two sets of lines, one in use and one to write: a handler never sees a half-written line.
struct Lines {
  std::array<char, 512> first{}, second{};
  std::size_t first_size = 0, second_size = 0;
};
std::array<Lines, 2> lines;
std::atomic<int> in_use = 0;
static_assert(std::atomic<int>::is_always_lock_free);

std::size_t set_line(std::array<char, 512>& line, const std::string& words) {
  if (words.empty()) return 0;
  // A progress bar may be on the terminal's current line.
  const std::string text = fmt::format("{}{}\n", isatty(STDERR_FILENO) != 0 ? "\n" : "",
                                       words.substr(0, line.size() - 2));
  std::copy(text.begin(), text.end(), line.begin());
  return text.size();
}

void say(const std::array<char, 512>& line, std::size_t size) {
  const int before = errno;
  if (size > 0 && write(STDERR_FILENO, line.data(), size) < 0) errno = before;
  errno = before;
}

extern "C" void receive_signal(int signal) {
  const Lines& now_in_use = lines[at(in_use.load())];
  if (signal == SIGINT) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int milliseconds =
        static_cast<int>(now.tv_sec % (kClockMilliseconds / 1000) * 1000 + now.tv_nsec / 1'000'000);
    int since = milliseconds - interrupt_milliseconds;
    if (since < 0) since += kClockMilliseconds;
    if (interrupts != 0 && since < kLeastMilliseconds) return;
    if (interrupts != 0 && since <= kMostMilliseconds) {
      say(now_in_use.second, now_in_use.second_size);
      _exit(128 + SIGINT);
    }
    interrupts = 1;
    interrupt_milliseconds = milliseconds;
  }
  if (signal_received == 0 || signal == SIGINT) say(now_in_use.first, now_in_use.first_size);
  if (signal_received == 0) signal_received = signal == SIGHUP ? SIGTERM : signal;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGUSR1: return "SIGUSR1";
    case SIGUSR2: return "SIGUSR2";
    case SIGXCPU: return "SIGXCPU";
    default: return "SIGTERM";
  }
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  // Restart slow system calls instead of failing with EINTR: not all libraries we call expect it.
  action.sa_flags = SA_RESTART;
  action.sa_handler = receive_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    // Signals ignored on purpose stay ignored (nohup ignores SIGHUP; a shell ignores SIGINT for
    // `&`).
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if (present.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaction(signal, &action, nullptr);
}

void set_stop_messages(const StopMessages& words) {
  const int next = 1 - in_use.load();
  Lines& to = lines[at(next)];
  to.first_size = set_line(to.first, words.first);
  to.second_size = set_line(to.second, words.second);
  in_use.store(next);
}

int pending_signal() { return signal_received; }

void take_signal(int signal) {
  if (signal_received == 0) signal_received = signal;
}

int interrupted_exit_code() { return 128 + (interrupted() ? pending_signal() : SIGINT); }

void stop_if_interrupted() {
  if (!interrupted()) return;
  throw Interrupted(fmt::format("stopped by {}; nothing was written", name_of(pending_signal())));
}

}  // namespace rk
