// Stopping on a signal: a run finishes its step, saves and exits with 128 + signal number.
//
// SIGINT, SIGTERM, SIGHUP (counted as SIGTERM) and the warnings of batch systems (SIGUSR1, SIGUSR2,
// SIGXCPU) only set a flag and print a line on standard error at once; every loop polls the flag,
// in evaluation and warm-up too. A second SIGINT within five seconds exits at once with 130 and
// touches no file, which is safe because files are replaced atomically; a later one is treated like
// the first. One within 0.3 s counts as the first, sent twice: timeout and mpirun pass on what the
// terminal already sends to their children. SIGPIPE and SIGXFSZ are ignored, so that a full disk or
// a closed pipe is an error to report instead of a death.
#pragma once

#include <stdexcept>
#include <string>

namespace rk {

void install_signal_handlers();

// The lines that signals print from now on. first: what the program now finishes and how long that
// may take; second, before exiting at once: what is lost. Empty: no line. Only one thread may set
// them; longer lines are cut to 510 bytes.
struct StopMessages {
  std::string first, second;
};
void set_stop_messages(const StopMessages& messages);

// The signal that asked to stop; 0 if none came.
int pending_signal();
inline bool interrupted() { return pending_signal() != 0; }
// Acts as if the signal had come: another process of the group was asked to stop.
void take_signal(int signal);

// Of a program that the signal stopped: 128 + the signal.
int interrupted_exit_code();

// Thrown once everything worth keeping is saved; run_program() prints the message ("stopped by
// SIGINT; resume with ...") and returns interrupted_exit_code().
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// For loops that have nothing to save: throws Interrupted("stopped by SIGTERM; nothing was
// written").
void stop_if_interrupted();

}  // namespace rk
