#include "engine/system/signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>

namespace rk {
namespace {

// Runs `work` in a child, because flags and handlers belong to a process. Returns its exit code, or
// minus the signal that killed it.
int code_of(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    // A shell starts background jobs with some of these ignored, which the handlers would respect.
    for (const int each : {SIGINT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU}) {
      signal(each, SIG_DFL);
    }
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
    } catch (const Interrupted&) {
      return interrupted_exit_code();
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
  EXPECT_EQ(code_after(SIGUSR2), 128 + SIGUSR2);
  EXPECT_EQ(code_after(SIGXCPU), 128 + SIGXCPU);
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
              usleep(350'000);
              raise(SIGINT);
              return 7;  // not reached
            }),
            130);
}

// As long as it is sent within 300 ms: on a busy machine a short sleep may take longer.
TEST(Signals, AnInterruptThatIsSentTwiceIsOne) {
  constexpr int kTooLate = 8;
  int code = kTooLate;
  for (int i = 0; i < 20 && code == kTooLate; ++i) {
    code = code_of([] {
      const auto first = std::chrono::steady_clock::now();
      raise(SIGINT);
      raise(SIGINT);
      usleep(50'000);
      if (std::chrono::steady_clock::now() - first > std::chrono::milliseconds(200))
        return kTooLate;
      raise(SIGINT);
      return 7;
    });
  }
  EXPECT_EQ(code, 7);
}

TEST(Signals, AnsweredAtOnceInTheWordsSetLast) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int code = code_of([&] {
    dup2(ends[1], STDERR_FILENO);
    set_stop_messages({"old", "old"});
    set_stop_messages({"first", "second"});
    raise(SIGTERM);
    raise(SIGUSR1);  // was answered
    raise(SIGINT);
    set_stop_messages({});
    set_stop_messages({std::string(2000, 'x'), "last"});
    usleep(350'000);
    raise(SIGINT);
    return 7;  // not reached
  });
  close(ends[1]);
  std::string said(100, '\0');
  said.resize(static_cast<std::size_t>(read(ends[0], said.data(), said.size())));
  close(ends[0]);
  EXPECT_EQ(code, 130);
  EXPECT_EQ(said, "first\nfirst\nlast\n");
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
