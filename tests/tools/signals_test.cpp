#include "tools/signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace rk {
namespace {

// Exit code of `work` in a child of its own: flags and handlers belong to a process.
int code_of(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    install_signal_handlers();
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int code_after(int signal) {
  return code_of([signal] {
    raise(signal);
    if (!interrupted()) return 0;
    try {
      stop_if_interrupted();
    } catch (const Interrupted& stop) {
      return stop.exit_code();
    }
    return 1;
  });
}

TEST(Signals, NothingPendingAtFirst) {
  EXPECT_EQ(code_of([] { return pending_signal(); }), 0);
}

TEST(Signals, StopsWithOneHundredTwentyEightAndTheSignal) {
  EXPECT_EQ(code_after(SIGINT), 130);
  EXPECT_EQ(code_after(SIGTERM), 143);
  EXPECT_EQ(code_after(SIGHUP), 143);  // counted as SIGTERM
  EXPECT_EQ(code_after(SIGUSR1), 128 + SIGUSR1);
}

TEST(Signals, TheFirstSignalDecides) {
  EXPECT_EQ(code_of([] {
              raise(SIGTERM);
              raise(SIGINT);
              return pending_signal();
            }),
            SIGTERM);
}

TEST(Signals, SecondInterruptLeavesAtOnce) {
  EXPECT_EQ(code_of([] {
              raise(SIGINT);
              raise(SIGINT);
              return 7;  // not reached
            }),
            130);
}

TEST(Signals, BrokenPipesAndFullFilesDoNotKill) {
  EXPECT_EQ(code_after(SIGPIPE), 0);
  EXPECT_EQ(code_after(SIGXFSZ), 0);
}

TEST(Signals, WhatWasIgnoredStaysIgnored) {
  const int code = code_of([] {
    signal(SIGHUP, SIG_IGN);  // as nohup does
    install_signal_handlers();
    raise(SIGHUP);
    return pending_signal();
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace rk
