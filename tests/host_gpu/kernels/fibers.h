// The threads of a CUDA block on one thread of the host: each is a fiber with a stack of its own,
// which runs until it waits for the others. Warps take turns in a drawn order, and so do the lanes
// of each, so that what relies on an order shows in one block or the next.
//
// Ends the program, saying why, where a GPU would hang or compute nonsense: if some threads wait
// for the block while others have ended, if they wait at two places, or if a warp's operation is
// not reached by all of its lanes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>

namespace rk::host_gpu {

class Fibers {
 public:
  static constexpr int kThreads = 256;
  static constexpr int kWarpSize = 32;

  // `seed`: of the orders.
  explicit Fibers(std::uint64_t seed);
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Runs work(thread) on every fiber until all have ended.
  void run(const std::function<void(int)>& work);

  // Of the fiber that runs: waits for all threads of the block, or of its warp. `line` tells the
  // places apart.
  void wait_for_block(unsigned line) { wait(State::kAtBlock, line); }
  void wait_for_warp(unsigned line) { wait(State::kAtWarp, line); }

 private:
  enum class State { kReady, kAtBlock, kAtWarp, kEnded };
  struct Fiber {
    std::unique_ptr<std::byte[]> stack;
    void* top = nullptr;  // of the stack, while another fiber runs
    State state = State::kEnded;
    unsigned line = 0;
  };

  static void begin();
  void resume(int thread);
  void wait(State state, unsigned line);
  void run_warp(int warp);
  void release_block();
  template <std::size_t n> void draw(std::array<int, n>& order);

  std::array<Fiber, kThreads> fibers_;
  std::array<int, kThreads / kWarpSize> warps_;
  std::array<int, kWarpSize> lanes_;
  int running_ = 0;
  void* scheduler_ = nullptr;  // the top of its stack
  const std::function<void(int)>* work_ = nullptr;
  std::minstd_rand random_;
};

}  // namespace rk::host_gpu
