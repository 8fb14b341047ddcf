#include "engine/system/parser_process.h"

#include "engine/base/error.h"
#include "engine/base/packed_values.h"
#include "engine/base/sanitizers.h"
#include "engine/base/text_of.h"
#include "engine/system/read_file.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

namespace rk {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ParserLimits kLimits = {.memory_bytes = std::uint64_t{64} << 20, .cpu_seconds = 20};
constexpr std::uint64_t kWait = 60;  // seconds
constexpr std::size_t kSlot = std::size_t{64} << 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the error message if the child does `work` instead of answering.
std::string failure_of(const std::function<std::size_t()>& work,
                       const ParserLimits& limits = kLimits, std::uint64_t wait = kWait) {
  ParserProcess parser("some.file", "the library", limits, wait, kSlot,
                       [&](std::span<std::byte>, std::size_t) { return work(); });
  parser.ask(bytes_of("?"), limits);
  try {
    parser.answer();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_TRUE(std::string(error.what()).starts_with("some.file: ")) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Maps `bytes` and writes to them: malloc might reuse memory that the parent freed, which does not
// count.
bool takes(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  std::memset(memory, 1, bytes);
  ::munmap(memory, bytes);
  return true;
}

TEST(ParserProcess, AnswersInOrderTwoAtATime) {
  ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                       [](std::span<std::byte> slot, std::size_t bytes) {
                         const std::string answer =
                             std::string(text_of(slot.first(bytes))) + " answered";
                         std::memcpy(slot.data(), answer.data(), answer.size());
                         return answer.size();
                       });
  parser.ask(bytes_of("0"), kLimits);
  for (int i = 1; i < 100; ++i) {
    parser.ask(bytes_of(std::to_string(i)), kLimits);
    EXPECT_EQ(text_of(parser.answer()), std::to_string(i - 1) + " answered");
  }
  EXPECT_EQ(text_of(parser.answer()), "99 answered");
}

TEST(ParserProcess, ARefusalIsThrownHereAndTheNextQuestionIsAnswered) {
  ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                       [](std::span<std::byte>, std::size_t bytes) -> std::size_t {
                         if (bytes == 1) fail<InputError>("some.file: no; do otherwise");
                         return 0;
                       });
  parser.ask(bytes_of("1"), kLimits);
  EXPECT_THROW(parser.answer(), InputError);
  parser.ask(bytes_of("22"), kLimits);
  EXPECT_TRUE(parser.answer().empty());
}

// A caller that goes on with the next data set after the one that killed the parser keeps asking:
// every answer must be that error.
TEST(ParserProcess, EveryQuestionAfterADeathIsAnsweredByIt) {
  ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                       [](std::span<std::byte>, std::size_t) -> std::size_t { ::_exit(5); });
  const auto said = [&] {
    try {
      parser.answer();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  parser.ask(bytes_of("1"), kLimits);
  parser.ask(bytes_of("2"), kLimits);
  const std::string first = said();
  EXPECT_TRUE(holds(first, "without a word"));
  EXPECT_EQ(said(), first);
  for (int i = 0; i < 5; ++i) {
    parser.ask(bytes_of("3"), kLimits);
    EXPECT_EQ(said(), first);
  }
}

TEST(ParserProcess, EveryDeathIsOneLine) {
  EXPECT_TRUE(holds(failure_of([]() -> std::size_t {
                      ::raise(SIGSEGV);
                      return 0;
                    }),
                    "crashes the library (signal 11"));
  EXPECT_TRUE(holds(failure_of([]() -> std::size_t { ::abort(); }), "signal 6"));
  EXPECT_TRUE(holds(failure_of([]() -> std::size_t {
                      ::raise(SIGKILL);
                      return 0;
                    }),
                    "was killed"));
  EXPECT_TRUE(holds(failure_of([]() -> std::size_t { ::_exit(5); }), "without a word"));
}

TEST(ParserProcess, EndlessWorkIsEnded) {
  ParserLimits limits = kLimits;
  limits.cpu_seconds = 1;
  const std::string said = failure_of(
      []() -> std::size_t {
        const volatile bool go_on = true;
        while (go_on) {
        }
        return 0;
      },
      limits);
  EXPECT_TRUE(holds(said, "busy for more than 1 s"));
}

TEST(ParserProcess, WaitingHasAnEnd) {
  const auto start = Clock::now();
  const std::string said = failure_of(
      []() -> std::size_t {
        ::sleep(1000);
        return 0;
      },
      kLimits, 1);
  EXPECT_TRUE(holds(said, "no answer for 1 s"));
  EXPECT_LT(seconds_since(start), 30);  // and not 1000
}

// Memory that the child inherits from its parent does not count, however much it is.
TEST(ParserProcess, MemoryHasALimit) {
  const std::vector<char> inherited(std::size_t{200} << 20, 'x');
  const auto ask_for = [](std::size_t mib, std::uint64_t allowed_mib) {
    ParserProcess parser(
        "some.file", "the library", kLimits, kWait, kSlot,
        [&](std::span<std::byte>, std::size_t) -> std::size_t { return takes(mib << 20) ? 1 : 0; });
    parser.ask(bytes_of("?"), {allowed_mib << 20, kLimits.cpu_seconds});
    return parser.answer().size() == 1;
  };
  EXPECT_TRUE(ask_for(32, 64));
  EXPECT_FALSE(ask_for(80, 64));
  EXPECT_FALSE(ask_for(80, 500));  // no question raises the limit
  EXPECT_FALSE(ask_for(32, 16));   // but one may lower it
  EXPECT_TRUE(holds(failure_of([]() -> std::size_t { throw std::bad_alloc(); }),
                    "needs more memory for it than 64 MiB"));
}

// It is not the file's fault if this program may not have the memory that a file may need.
TEST(ParserProcess, WantOfTheCallersMemoryIsNoDamage) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit less = before;
  less.rlim_cur = std::uint64_t{1} << 45;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &less), 0);
  ParserLimits more = kLimits;
  more.memory_bytes = std::uint64_t{1} << 50;
  ParserProcess parser(
      "some.file", "the library", more, kWait, kSlot,
      [](std::span<std::byte>, std::size_t) -> std::size_t { throw std::bad_alloc(); });
  ::setrlimit(RLIMIT_AS, &before);
  parser.ask(bytes_of("?"), more);
  std::string said;
  try {
    parser.answer();
  } catch (const SystemError& error) {
    said = error.what();
  }
  EXPECT_TRUE(holds(said, "raise the limit (ulimit -v)"));
}

TEST(ParserProcess, ALieAboutTheAnswersLengthIsSeen) {
  EXPECT_TRUE(holds(failure_of([] { return kSlot + 1; }), "does not answer as it should"));
}

TEST(ParserProcess, WithoutAProcessTheFileIsNotRead) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string said;
  try {
    ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                         [](std::span<std::byte>, std::size_t) { return std::size_t{0}; });
  } catch (const SystemError& error) {
    said = error.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(holds(said, "some.file: is not read: a process for the library cannot be started"));
}

// The child can neither write files nor start processes, and it has none of the parent's
// descriptors.
TEST(ParserProcess, TheChildCanDoLittle) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                       [&](std::span<std::byte> slot, std::size_t) {
                         PackedWriter out(slot);
                         out.number(::write(ends[1], "x", 1) == 1 ? 1 : 0);
                         rlimit limit{};
                         for (const auto each : {RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_CORE}) {
                           ::getrlimit(each, &limit);
                           out.number(limit.rlim_max);
                         }
                         return out.bytes();
                       });
  parser.ask(bytes_of("?"), kLimits);
  PackedReader in(parser.answer());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(in.number(), 0U) << i;
  ::close(ends[0]);
  ::close(ends[1]);
}

struct Stop : std::exception {};

TEST(ParserProcess, WaitingCanBeInterrupted) {
  const auto start = Clock::now();
  static Clock::time_point until;
  until = start + std::chrono::milliseconds(300);
  set_parser_interruption([] {
    if (Clock::now() > until) throw Stop();
  });
  EXPECT_THROW(failure_of([]() -> std::size_t {
                 ::sleep(1000);
                 return 0;
               }),
               Stop);
  set_parser_interruption(nullptr);
  EXPECT_LT(seconds_since(start), 30);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left, alive or not
}

// Ctrl-C reaches both processes: the parent decides what it means.
TEST(ParserProcess, ATerminalsSignalsAreTheParents) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGQUIT}) {
    ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                         [&](std::span<std::byte>, std::size_t) -> std::size_t {
                           ::raise(signal);
                           return 0;
                         });
    parser.ask(bytes_of("?"), kLimits);
    EXPECT_TRUE(parser.answer().empty());
  }
}

TEST(ParserProcess, DiesWithItsParent) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // then its parser becomes our child
  const pid_t parent = ::fork();
  if (parent == 0) {
    ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                         [](std::span<std::byte>, std::size_t) -> std::size_t {
                           ::kill(::getppid(), SIGKILL);
                           ::sleep(1000);
                           return 0;
                         });
    parser.ask(bytes_of("?"), kLimits);
    parser.answer();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_TRUE(WIFSIGNALED(status));
  const auto start = Clock::now();
  ASSERT_GT(::waitpid(-1, &status, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_LT(seconds_since(start), 30);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// Other threads that keep allocating may hold the allocator's locks at the moment of the fork.
TEST(ParserProcess, WorksBesideThreads) {
  if (RK_SANITIZED) GTEST_SKIP() << "a sanitizer's heap may be locked by another thread at fork()";
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) std::vector<char>(100'000).data()[5] = 1;
    });
  }
  for (int i = 0; i < 50; ++i) {
    ParserProcess parser("some.file", "the library", kLimits, kWait, kSlot,
                         [](std::span<std::byte>, std::size_t) -> std::size_t {
                           const std::vector<char> small(1000), large(1 << 20);
                           return small.size() + large.size() > 1000 ? 1 : 0;
                         });
    parser.ask(bytes_of("?"), kLimits);
    EXPECT_EQ(parser.answer().size(), 1U);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(PackedValues, ReadBackAndEnd) {
  std::array<std::byte, 64> bytes{};
  PackedWriter out(bytes);
  out.number(7);
  out.text("abc");
  out.text("");
  EXPECT_EQ(out.bytes(), 27U);
  const std::span<const std::byte> all = bytes;
  PackedReader in(all.first(out.bytes()));
  EXPECT_EQ(in.number(), 7U);
  EXPECT_EQ(in.text(), "abc");
  EXPECT_EQ(in.text(), "");
  EXPECT_TRUE(in.at_end());
  EXPECT_THROW(in.number(), std::out_of_range);
  EXPECT_THROW(out.text(std::string(60, 'x')), std::length_error);
  const std::vector<std::byte> ones(8, std::byte{0xff});
  PackedReader long_text(ones);
  EXPECT_THROW(long_text.text(), std::out_of_range);
}

}  // namespace
}  // namespace rk
