// A team of 2 to 4 threads that keeps the contract of kernels/team.h and nothing more, so that
// ThreadSanitizer sees every barrier a row kernel lacks:
//   - the map from index to member is rotated with every call;
//   - sync() and the collectives check that all members came to the same line; if not, they abort,
//     naming both lines;
//   - nothing is ordered between barriers.
// A sync() of a given line can be left out, which is how the detector itself is tested. (The line
// is the compiler's own builtin: clang++ 14 has no std::source_location.)
#pragma once

#include "engine/base/integers.h"
#include "kernels/team.h"

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

namespace rk::race {

// What the members of a team share.
struct TeamState {
  explicit TeamState(int members)
      : barrier(members), lines(static_cast<std::size_t>(members)), slots(lines.size()) {}

  struct alignas(64) Slot {
    double value = 0;
    int index = -1;
  };
  std::barrier<> barrier;
  std::vector<unsigned> lines;  // the line each member is at
  std::vector<Slot> slots;      // what each member found
  std::vector<unsigned> syncs;  // lines of sync() seen so far; written by member 0 alone
  unsigned dropped = 0;         // the line whose sync() does nothing
};

class ThreadTeam {
 public:
  ThreadTeam(TeamState& state, int member) : state_(state), member_(member) {}

  void sync(unsigned line = __builtin_LINE()) const {
    if (member_ == 0) note(line);
    if (line == state_.dropped) return;
    meet(line);
  }

  template <class F> void for_each(int n, F&& f) const {
    const int first = turn();
    for (int i = first; i < n; i += members()) f(i);
  }

  template <class F> auto sum(int n, F&& f, unsigned line = __builtin_LINE()) const {
    meet(line);
    decltype(f(0)) total = 0;
    for_each(n, [&](int i) { total += f(i); });
    mine().value = static_cast<double>(total);
    meet(line);
    total = 0;
    for (const auto& slot : state_.slots) total += static_cast<decltype(f(0))>(slot.value);
    meet(line);
    return total;
  }

  template <class S, class F>
  void sums(int rows, int n, S* out, F&& f, unsigned line = __builtin_LINE()) const {
    meet(line);
    for_each(rows, [&](int r) {
      S total = 0;
      for (int i = 0; i < n; ++i) total += f(r, i);
      out[r] = total;
    });
    meet(line);
  }

  template <class F> auto arg_max(int n, F&& f, unsigned line = __builtin_LINE()) const {
    using S = decltype(f(0));
    meet(line);
    ValueIndex<S> best{-std::numeric_limits<S>::infinity(), -1};
    for_each(n, [&](int i) { keep_larger(best, {f(i), i}); });
    mine() = {static_cast<double>(best.value), best.index};
    meet(line);
    best = {-std::numeric_limits<S>::infinity(), -1};
    for (const auto& slot : state_.slots) {
      if (slot.index >= 0) keep_larger(best, {static_cast<S>(slot.value), slot.index});
    }
    meet(line);
    return best;
  }

  template <class Wanted, class Store>
  int compact(int n, Wanted&& wanted, Store&& store, unsigned line = __builtin_LINE()) const {
    meet(line);
    for_each(1, [&](int) {  // by one member, a different one each time
      int count = 0;
      for (int i = 0; i < n; ++i) {
        if (wanted(i)) store(i, count++);
      }
      state_.slots[0].index = count;
    });
    meet(line);
    const int count = state_.slots[0].index;
    meet(line);
    return count;
  }

 private:
  int members() const { return static_cast<int>(state_.lines.size()); }
  TeamState::Slot& mine() const { return state_.slots[at(member_)]; }
  // This member's first index; the next call gives it to another member.
  int turn() const { return (member_ + ++calls_) % members(); }

  template <class S> static void keep_larger(ValueIndex<S>& best, const ValueIndex<S>& other) {
    const bool earlier = best.index < 0 || other.index < best.index;
    if (other.value > best.value || (other.value == best.value && earlier)) best = other;
  }

  void note(unsigned line) const {
    for (const unsigned seen : state_.syncs) {
      if (seen == line) return;
    }
    state_.syncs.push_back(line);
  }

  void meet(unsigned line) const {
    state_.lines[at(member_)] = line;
    state_.barrier.arrive_and_wait();
    for (const unsigned other : state_.lines) {
      if (other == line) continue;
      std::fprintf(stderr, "members of a team meet at line %u and at line %u\n", line, other);
      std::abort();
    }
    state_.barrier.arrive_and_wait();
  }

  TeamState& state_;
  int member_;
  mutable int calls_ = 0;
};

// Runs work(team) on every member.
template <class F> void run_team(TeamState& state, F&& work) {
  std::vector<std::thread> threads;
  for (std::size_t member = 0; member < state.lines.size(); ++member) {
    threads.emplace_back([&, member] { work(ThreadTeam(state, static_cast<int>(member))); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rk::race
