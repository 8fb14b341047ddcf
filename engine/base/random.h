// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): every draw is a function of
// (seed, stream, index, number of the draw), so it depends on neither threads nor order nor
// resuming. Use one `stream` per purpose and epoch, and `index` for the item: CounterRandom(seed,
// epoch, image).
#pragma once

#include <array>
#include <cstdint>

namespace rk {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, std::uint32_t stream, std::uint64_t index);

  std::uint32_t next();                     // 32 random bits
  double uniform();                         // [0, 1), 53 bits (two draws)
  double uniform(double low, double high);  // [low, high)
  std::int64_t below(std::int64_t n);       // {0, ..., n-1}, n >= 1, unbiased
  double normal();                          // mean 0, variance 1 (Box-Muller, in pairs)

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;  // {draw, stream, index low, index high}
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  double spare_ = 0;  // the second number of a Box-Muller pair
  bool has_spare_ = false;
};

}  // namespace rk
