#include "tests/host_gpu/kernels/fibers.h"

#include "engine/base/integers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

// Puts what a caller wants kept on this stack, stores where it ends in *from, and goes on where
// `to` was left. (The C library's own asks the system for the signals' mask at every change, which
// costs a hundred times as much.)
extern "C" void rk_change_fiber(void** from, void* to);
asm(R"(
.text
.type rk_change_fiber, @function
rk_change_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size rk_change_fiber, .-rk_change_fiber
)");

namespace rk::host_gpu {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

[[noreturn]] void stop(const char* what, unsigned line) {
  std::fprintf(stderr, "a block of a kernel: %s (line %u)\n", what, line);
  std::abort();
}

// The one whose fiber runs: begin() is called by none that could hand it on.
thread_local Fibers* current = nullptr;

}  // namespace

Fibers::Fibers(std::uint64_t seed) : random_(static_cast<std::minstd_rand::result_type>(seed)) {
  for (Fiber& fiber : fibers_)
    fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
}

void Fibers::begin() {
  for (;;) {
    const int thread = current->running_;
    (*current->work_)(thread);
    current->wait(State::kEnded, 0);
  }
}

void Fibers::resume(int thread) {
  Fiber& fiber = fibers_[at(thread)];
  if (fiber.top == nullptr) {
    // Six registers and where to return to, at which a function finds its stack after a call:
    // 8 bytes beside a multiple of 16.
    auto* end = reinterpret_cast<void**>(fiber.stack.get() + kStackBytes);
    end -= reinterpret_cast<std::uintptr_t>(end) % 16 / sizeof(void*) + 2;
    std::fill(end - 6, end + 2, nullptr);
    *end = reinterpret_cast<void*>(&Fibers::begin);
    fiber.top = end - 6;
  }
  running_ = thread;
  rk_change_fiber(&scheduler_, fiber.top);
}

void Fibers::wait(State state, unsigned line) {
  Fiber& self = fibers_[at(running_)];
  self.state = state;
  self.line = line;
  rk_change_fiber(&self.top, scheduler_);
}

// Not all orders, but cheap ones: forwards or backwards, from anywhere, in odd steps.
template <std::size_t n> void Fibers::draw(std::array<int, n>& order) {
  const auto drawn = static_cast<std::size_t>(random_());
  const std::size_t first = drawn % n, step = drawn / n | 1U;
  for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<int>((first + i * step) % n);
}

// Until every lane waits for the block or has ended.
void Fibers::run_warp(int warp) {
  Fiber* const lanes = &fibers_[at(warp * kWarpSize)];
  draw(lanes_);
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
  current = this;
  work_ = &work;
  for (Fiber& fiber : fibers_) fiber.state = State::kReady;
  for (;;) {
    draw(warps_);
    for (const int warp : warps_) run_warp(warp);
    if (std::ranges::all_of(fibers_, [](const Fiber& f) { return f.state == State::kEnded; })) {
      return;
    }
    release_block();
  }
}

}  // namespace rk::host_gpu
