// Being stopped from outside: a run finishes its step, saves and leaves with 128 + signal number.
//
// SIGINT, SIGTERM, SIGHUP (counted as SIGTERM) and what batch systems warn with (SIGUSR1, SIGUSR2,
// SIGXCPU) only set a flag and are answered at once by a line on standard error; every loop polls
// the flag, evaluation and warm-up too. A second SIGINT within five seconds leaves at once with 130
// and touches no file, which is safe because files are replaced atomically; a later one is answered
// like the first, one within 0.3 s is the first once more (timeout and mpirun pass on what the
// terminal sends to their children as well). SIGPIPE and SIGXFSZ are ignored, so that a full disk
// or a closed pipe is an error to report instead of a death.
#pragma once

#include <stdexcept>
#include <string>

namespace rk {

void install_signal_handlers();

// What signals are answered with from now on: what is done and how long that may take; what is lost
// by leaving at once. Empty: nothing is said. For one thread; a few hundred bytes each.
struct StopWords {
  std::string first, second;
};
void set_stop_words(const StopWords& words);

// The signal that asks to stop; 0 while none came.
int pending_signal();
inline bool interrupted() { return pending_signal() != 0; }
// As if it had come: another process of the group was asked to stop.
void take_signal(int signal);

// Thrown once everything worth keeping is saved; run_program() prints the message ("stopped by
// SIGINT; resume with ...") and returns exit_code().
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(const std::string& message);
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// For loops that have nothing to save: throws Interrupted("stopped by SIGTERM; nothing was
// written").
void stop_if_interrupted();

}  // namespace rk
