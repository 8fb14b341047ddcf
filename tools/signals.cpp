#include "tools/signals.h"

#include <fmt/format.h>

#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace rk {
namespace {

constexpr int kImpatientSeconds = 5;

// What a signal handler may write to, by the standard.
volatile sig_atomic_t signal_received = 0;
volatile sig_atomic_t interrupt_seconds = 0;
volatile sig_atomic_t interrupts = 0;

extern "C" void receive_signal(int signal) {
  if (signal == SIGINT) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int seconds = static_cast<int>(now.tv_sec);
    if (interrupts != 0 && seconds - interrupt_seconds <= kImpatientSeconds) _exit(128 + SIGINT);
    interrupts = 1;
    interrupt_seconds = seconds;
  }
  if (signal_received == 0) signal_received = signal == SIGHUP ? SIGTERM : signal;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGUSR1: return "SIGUSR1";
    default: return "SIGTERM";
  }
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  // Slow calls go on instead of failing with EINTR: libraries we call do not all expect it.
  action.sa_flags = SA_RESTART;
  action.sa_handler = receive_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    // What was ignored on purpose stays so (nohup ignores SIGHUP; a shell ignores SIGINT for `&`).
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if (present.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaction(signal, &action, nullptr);
}

int pending_signal() { return signal_received; }

void take_signal(int signal) {
  if (signal_received == 0) signal_received = signal;
}

Interrupted::Interrupted(const std::string& message)
    : std::runtime_error(message), exit_code_(128 + (interrupted() ? pending_signal() : SIGINT)) {}

void stop_if_interrupted() {
  if (!interrupted()) return;
  throw Interrupted(fmt::format("stopped by {}; nothing was written", name_of(pending_signal())));
}

}  // namespace rk
