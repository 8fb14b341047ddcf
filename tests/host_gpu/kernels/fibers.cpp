#include "tests/host_gpu/kernels/fibers.h"

#include "engine/base/integers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace rk::host_gpu {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

[[noreturn]] void stop(const char* what, unsigned line) {
  std::fprintf(stderr, "a block of a kernel: %s (line %u)\n", what, line);
  std::abort();
}

// Goes on where `to` was left, until somebody comes back to `from`. Not inlined, so that all
// registers that a caller wants kept lie on its stack.
[[gnu::noinline]] void change(void** from, void** to) {
  if (__builtin_setjmp(from) == 0) __builtin_longjmp(to, 1);
}

// makecontext() hands on no pointers.
thread_local Fibers* created = nullptr;

}  // namespace

Fibers::Fibers(std::uint64_t seed) : random_(static_cast<std::minstd_rand::result_type>(seed)) {
  std::iota(warps_.begin(), warps_.end(), 0);
  std::iota(lanes_.begin(), lanes_.end(), 0);
  for (int thread = 0; thread < kThreads; ++thread) create(thread);
}

// swapcontext() asks the system for the signals' mask, which costs more than all else: it only
// makes the stacks.
void Fibers::create(int thread) {
  Fiber& fiber = fibers_[at(thread)];
  fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, &Fibers::begin, 0);
  created = this;
  running_ = thread;
  swapcontext(&creator_, &context);
}

void Fibers::begin() {
  Fibers& all = *created;
  const int thread = all.running_;
  Fiber& self = all.fibers_[at(thread)];
  if (__builtin_setjmp(self.jump.data()) == 0) setcontext(&all.creator_);
  for (;;) {
    (*all.work_)(thread);
    self.state = State::kEnded;
    change(self.jump.data(), all.scheduler_.data());
  }
}

void Fibers::resume(int thread) {
  running_ = thread;
  change(scheduler_.data(), fibers_[at(thread)].jump.data());
}

void Fibers::wait(State state, unsigned line) {
  Fiber& self = fibers_[at(running_)];
  self.state = state;
  self.line = line;
  change(self.jump.data(), scheduler_.data());
}

template <std::size_t n> void Fibers::shuffle(std::array<int, n>& order) {
  std::shuffle(order.begin(), order.end(), random_);
}

// Until every lane waits for the block or has ended.
void Fibers::run_warp(int warp) {
  Fiber* const lanes = &fibers_[at(warp * kWarpSize)];
  shuffle(lanes_);
  for (;;) {
    for (const int lane : lanes_) {
      if (lanes[lane].state == State::kReady) resume(warp * kWarpSize + lane);
    }
    const auto is_waiting = [](const Fiber& lane) { return lane.state == State::kAtWarp; };
    const Fiber* const some = std::find_if(lanes, lanes + kWarpSize, is_waiting);
    if (some == lanes + kWarpSize) return;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if (!is_waiting(lanes[lane]) || lanes[lane].line != some->line) {
        stop("not every lane reaches a warp's operation", some->line);
      }
    }
    for (int lane = 0; lane < kWarpSize; ++lane) lanes[lane].state = State::kReady;
  }
}

void Fibers::release_block() {
  const auto is_waiting = [](const Fiber& fiber) { return fiber.state == State::kAtBlock; };
  const unsigned line = std::ranges::find_if(fibers_, is_waiting)->line;
  for (Fiber& fiber : fibers_) {
    if (fiber.state == State::kEnded) stop("threads end while others wait for them", line);
    if (fiber.line != line) stop("threads wait for each other at two places", line);
    fiber.state = State::kReady;
  }
}

void Fibers::run(const std::function<void(int)>& work) {
  work_ = &work;
  for (Fiber& fiber : fibers_) fiber.state = State::kReady;
  for (;;) {
    shuffle(warps_);
    for (const int warp : warps_) run_warp(warp);
    if (std::ranges::all_of(fibers_, [](const Fiber& f) { return f.state == State::kEnded; })) {
      return;
    }
    release_block();
  }
}

}  // namespace rk::host_gpu
