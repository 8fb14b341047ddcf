// Average precision of one long ranking and its black-box gradient (Rolinek et al. 2020; the rules
// of kernels/rows/rambo_row.h) on the CPU (on a GPU: losses/scores/gpu_ranking.h), for 1e3 to 1e8
// scores with 0/1 targets. Unlike in a row, v = s -+ margin / 2 is rounded to S before ranking, and
// values that become equal are ties.
//
// One stable radix sort ranks everything. In the backward pass only the positives move, so only
// they are sorted again, and one merge with the negatives, whose order stays, gives every new rank.
// The rounding remainder of v' = v + lambda g is stored next to it and orders positives that round
// to the same value; rounded itself, it separates positives of equal v by steps down to about 2^-49
// of v in float.
// Ranks are subtracted as integers: as fractions of 1e8 they would lose digits in float32.
#pragma once

#include "engine/device/buffer.h"
#include "engine/device/context.h"
#include "kernels/radix_sort.h"

#include <cstdint>
#include <type_traits>

namespace rk {

template <class S> class Ranking {
 public:
  struct Params {
    double lambda = 0.5;
    double margin = 0.1;
  };

  // For rankings of up to n scores. Throws DeviceError if memory does not suffice.
  void allocate(const Context& context, std::int64_t n);

  // Takes scores and targets of n items, `stride` apart; at least one target must be 1. Returns
  // 1 - AP, as the mean of (negatives above)/(rank): nothing cancels, however small it is. Writes
  // the gradient of weight * (1 - AP) to grad, with the same stride.
  double run(const Context& context, const Params& params, std::int64_t n, std::int64_t stride,
             const S* scores, const std::uint8_t* targets, double weight, S* grad);

  std::int64_t bytes() const;

 private:
  using Key = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
  using Items = KeyedItems<Key>;

  // What one run ranks.
  struct Problem {
    int threads;
    std::int64_t n, stride;
    const S* scores;
    const std::uint8_t* targets;
    double half;  // of the margin
    S* grad;
  };

  Items rank(const Problem& p);
  double move_positives(const Problem& p, const Items& order, double factor);
  Items sort_moved(const Problem& p, std::int64_t positives, const Items& room);
  void write_gradient(const Problem& p, const Items& order, const Items& moved,
                      std::int64_t positives, S scale);

  Items items(int buffer) const {
    return {keys_[buffer].template as<Key>(), items_[buffer].template as<std::uint32_t>()};
  }
  // Of two buffers the one that does not hold `items`.
  Items other(const Items& taken, int a, int b) const {
    return taken.keys == items(a).keys ? items(b) : items(a);
  }

  Buffer keys_[3];
  Buffer items_[3];   // index; the highest bit says whether it is a positive
  Buffer places_;     // of positives in the first order, by index
  Buffer residuals_;  // v' minus its rounded value, of positives, by index
  Buffer counts_;
  int threads_ = 1;
};

}  // namespace rk
