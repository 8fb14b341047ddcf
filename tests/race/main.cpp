// Row kernels under ThreadSanitizer, which ends the program with code 66 if it saw a race.
//   race_test [CASE...]  runs the cases (all, or those whose names begin so) on teams of 2, 3 and 4
//                      and on an emulated CUDA block: there must be no race, and the results must
//                      be SerialTeam's
//   race_test --guard  the mutation guard: for every sync() of every kernel, this program with that
//                      sync left out (race_test --drop CASE LINE) must end with code 66; the same
//                      for every sync() of block_team.h (race_test --drop-block FILE LINE) and of
//                      the kernels of a block (race_test --drop-kernel CASE FILE LINE)
#include "tests/race/block_kernels.h"
#include "tests/race/cases.h"
#include "tests/race/thread_team.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace rk::race {
namespace {

constexpr int kRaceSeen = 66;

std::vector<double> run_serial(const Case& test) {
  const auto run = test.make();
  run->serial(SerialTeam());
  return run->written();
}

std::vector<double> run_threads(const Case& test, TeamState& state) {
  const auto run = test.make();
  run_team(state, [&](const ThreadTeam& team) { run->threads(team); });
  return run->written();
}

std::vector<double> run_emulated(const Case& test, BlockState& state) {
  const auto run = test.make();
  run_blocks(state, 1, [&](const EmulatedBlock& block) { run->block(EmulatedTeam(block)); });
  return run->written();
}

// The largest difference, relative to the largest value: rows of a gradient share their rounding.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::fmax(largest, std::abs(a[i]));
    const double here = std::abs(a[i] - b[i]);
    if (here > worst || std::isnan(here)) worst = here;  // NaN stays
  }
  return largest > 0 ? worst / largest : worst;
}

// Whether the name begins with one of `chosen`, or nothing was chosen.
bool is_chosen(const std::string& name, const std::vector<std::string>& chosen) {
  return chosen.empty() || std::any_of(chosen.begin(), chosen.end(), [&](const std::string& begin) {
           return name.starts_with(begin);
         });
}

int run_all(const std::vector<std::string>& chosen) {
  int failures = 0;
  int run = 0;
  for (const Case& test : cases()) {
    if (!is_chosen(test.name, chosen)) continue;
    ++run;
    const std::vector<double> expected = run_serial(test);
    for (const double value : expected) {
      if (std::isfinite(value)) continue;
      std::printf("FAIL %s: SerialTeam wrote %g\n", test.name.c_str(), value);
      ++failures;
      break;
    }
    for (int members = 2; members <= 4; ++members) {
      TeamState state(members);
      const double worst = difference(expected, run_threads(test, state));
      const bool good = worst <= test.bound;
      failures += good ? 0 : 1;
      std::printf("%s %s on %d members: off by %.1e (at most %.0e), %zu syncs\n",
                  good ? "pass" : "FAIL", test.name.c_str(), members, worst, test.bound,
                  state.syncs.size());
    }
    BlockState state;
    const double worst = difference(expected, run_emulated(test, state));
    const bool good = worst <= test.bound;
    failures += good ? 0 : 1;
    std::printf("%s %s on a block: off by %.1e (at most %.0e)\n", good ? "pass" : "FAIL",
                test.name.c_str(), worst, test.bound);
  }
  for (const KernelCase& test : kernel_cases()) {
    if (!is_chosen(test.name, chosen)) continue;
    ++run;
    BlockState state;
    const std::vector<double> expected = test.serial();
    const double worst = difference(expected, test.emulated(state));
    const double wide = difference(expected, test.wide());
    const bool good = worst <= test.bound && wide <= test.bound;
    failures += good ? 0 : 1;
    std::printf("%s %s on a block: off by %.1e, on one of 256 by %.1e (at most %.0e), %zu syncs\n",
                good ? "pass" : "FAIL", test.name.c_str(), worst, wide, test.bound,
                state.syncs.size());
  }
  if (run == 0) std::printf("FAIL no case has such a name\n");
  if (chosen.empty()) {
    for (const std::string& kernel : kernels_never_run()) {
      std::printf("FAIL %s: no case in tests/race/block_kernels.cpp runs it\n", kernel.c_str());
      ++failures;
    }
  }
  return failures == 0 && run > 0 ? 0 : 1;
}

int run_dropped(const std::string& name, unsigned line) {
  for (const Case& test : cases()) {
    if (test.name != name) continue;
    for (int members = 2; members <= 4; ++members) {
      TeamState state(members);
      state.dropped = line;
      run_threads(test, state);
    }
    return 0;  // ThreadSanitizer makes it 66
  }
  return 2;
}

int run_dropped_block(const SyncPlace& place) {
  for (const Case& test : cases()) {
    if (test.name != kCollectives) continue;
    BlockState state;
    state.dropped = place;
    run_emulated(test, state);
  }
  return 0;  // ThreadSanitizer makes it 66
}

int run_dropped_kernel(const std::string& name, const SyncPlace& place) {
  for (const KernelCase& test : kernel_cases()) {
    if (test.name != name) continue;
    BlockState state;
    state.dropped = place;
    test.emulated(state);
    return 0;  // ThreadSanitizer makes it 66
  }
  return 2;
}

// Runs this program with `arguments`; returns its exit code, or -1 if it did not end by itself.
int run_child(const char* program, std::vector<std::string> arguments) {
  const pid_t child = fork();
  if (child == 0) {
    // ThreadSanitizer's reports are expected: only the exit code counts, and the first decides it.
    // Looking up a report's lines takes four times as long as all else.
    if (!std::freopen("/dev/null", "w", stderr)) std::_Exit(2);
    setenv("TSAN_OPTIONS", "halt_on_error=1:symbolize=0", 1);
    arguments.insert(arguments.begin(), program);
    std::vector<char*> values;
    for (std::string& argument : arguments) values.push_back(argument.data());
    values.push_back(nullptr);
    execv(program, values.data());
    std::_Exit(2);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Whether ThreadSanitizer sees the race when this program runs with `arguments`. It keeps few past
// accesses of an address and may miss two at the very same moment (one run in twenty did), so a run
// without a report is repeated; a program without a race is never reported.
bool race_found(const char* program, const std::vector<std::string>& arguments) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (run_child(program, arguments) == kRaceSeen) return true;
  }
  return false;
}

int run_guard(const char* program) {
  int failures = 0;
  // A guard that leaves out no sync would find no fault either.
  const auto expect_some = [&failures](const char* where, std::size_t left_out) {
    failures += left_out > 0 ? 0 : 1;
    std::printf("%s %zu syncs of %s were left out\n", left_out > 0 ? "pass" : "FAIL", left_out,
                where);
  };
  std::size_t left_out = 0;
  for (const Case& test : cases()) {
    TeamState state(3);
    run_threads(test, state);
    left_out += state.syncs.size();
    if (state.syncs.empty()) std::printf("pass %s has no sync\n", test.name.c_str());
    for (const unsigned line : state.syncs) {
      const bool found = race_found(program, {"--drop", test.name, std::to_string(line)});
      failures += found ? 0 : 1;
      std::printf("%s %s without the sync of line %u: %s\n", found ? "pass" : "FAIL",
                  test.name.c_str(), line, found ? "race found" : "no race found");
    }
  }
  expect_some("teams", left_out);
  BlockState block;
  for (const Case& test : cases()) {
    if (test.name == kCollectives) run_emulated(test, block);
  }
  for (const SyncPlace& place : block.syncs) {
    const bool found =
        race_found(program, {"--drop-block", place.file, std::to_string(place.line)});
    failures += found ? 0 : 1;
    std::printf("%s block team without the sync of line %u: %s\n", found ? "pass" : "FAIL",
                place.line, found ? "race found" : "no race found");
  }
  expect_some("block teams", block.syncs.size());
  left_out = 0;
  for (const KernelCase& test : kernel_cases()) {
    BlockState state;
    test.emulated(state);
    for (const SyncPlace& place : state.syncs) {
      if (place.file.ends_with("block_team.h")) continue;  // tested above, where each is needed
      ++left_out;
      const bool found =
          race_found(program, {"--drop-kernel", test.name, place.file, std::to_string(place.line)});
      failures += found ? 0 : 1;
      std::printf("%s %s without the sync of %s:%u: %s\n", found ? "pass" : "FAIL",
                  test.name.c_str(), place.file.substr(place.file.rfind('/') + 1).c_str(),
                  place.line, found ? "race found" : "no race found");
    }
  }
  expect_some("kernels", left_out);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rk::race

int main(int argc, char** argv) {
  if (argc == 1 || argv[1][0] != '-') return rk::race::run_all({argv + 1, argv + argc});
  if (argc == 2 && std::strcmp(argv[1], "--guard") == 0)
    return rk::race::run_guard("/proc/self/exe");
  if (argc == 4 && std::strcmp(argv[1], "--drop") == 0) {
    return rk::race::run_dropped(argv[2],
                                 static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
  }
  const auto place = [&](int first) {
    return rk::race::SyncPlace{argv[first],
                               static_cast<unsigned>(std::strtoul(argv[first + 1], nullptr, 10))};
  };
  if (argc == 4 && std::strcmp(argv[1], "--drop-block") == 0) {
    return rk::race::run_dropped_block(place(2));
  }
  if (argc == 5 && std::strcmp(argv[1], "--drop-kernel") == 0) {
    return rk::race::run_dropped_kernel(argv[2], place(3));
  }
  std::fprintf(stderr,
               "error: race_test [CASE... | --guard | --drop CASE LINE | --drop-block FILE LINE | "
               "--drop-kernel CASE FILE LINE]\n");
  return 2;
}
