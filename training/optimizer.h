// Adam (Kingma & Ba 2015), AdamW (Loshchilov & Hutter 2019) and SGD with momentum, by PyTorch's
// formulas, over flat float32 buffers: parameter i, its gradient and its state share index i.
//
//   Adam    g += decay p;   m += (1-b1)(g-m);  v = b2 v + (1-b2) g^2;
//           p -= rate / (1-b1^t) * m / (sqrt(v) / sqrt(1-b2^t) + eps)
//   AdamW   p *= 1 - rate decay, then Adam with decay = 0
//   SGD     g += decay p;   b = momentum b + g;   p -= rate * (b, or with Nesterov g + momentum b)
//
// A group is a range of indices with its own rate factor and decay; an index in no group is frozen.
// step() is one pass over memory, allocates nothing and rounds alike for any number of threads.
#pragma once

#include "engine/device/buffer.h"
#include "engine/device/context.h"
#include "engine/tape/parameters.h"
#include "kernels/blocks/optimizer_params.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

// The groups of what is learnt: the embedding layer at `embedding_rate` times the rate, a loss's
// proxies at `proxy_rate` times; weight decay holds for every parameter, biases, batch norm's and
// proxies included, as plain PyTorch and the authors' code have it. Parameters whose names begin
// with one of `frozen` stay as they are: no rate, no decay.
std::vector<OptimizerGroup> optimizer_groups(const Parameters& parameters, double embedding_rate,
                                             double weight_decay, double proxy_rate = 1.0,
                                             const std::vector<std::string>& frozen = {});

// What changes from one step to the next.
struct StepState {
  double rate = 0.0;
  std::int64_t number = 1;  // t above: 1 in the first step
};

class Optimizer {
 public:
  struct State {
    std::string_view name;  // PyTorch's: exp_avg, exp_avg_sq, momentum_buffer
    float* values;
    std::int64_t count;
  };

  // `count` elements in each flat buffer. Groups may come in any order but must not overlap.
  // Throws UsageError where a number cannot be meant (beta outside [0, 1), negative decay, ...).
  Optimizer(const OptimizerParams& params, std::vector<OptimizerGroup> groups, std::int64_t count);

  void step(const Context& context, const StepState& state, float* parameters,
            const float* gradients);

  // All that a checkpoint needs beside the step's number. Zero before the first step.
  std::vector<State> states() const;
  void reset();
  const OptimizerParams& params() const { return params_; }
  const std::vector<OptimizerGroup>& groups() const { return groups_; }  // sorted, joined
  std::size_t state_bytes() const { return first_.bytes() + second_.bytes(); }

 private:
  OptimizerParams params_;
  std::vector<OptimizerGroup> groups_;  // sorted; neighbours of one setting merged
  std::int64_t count_;
  Buffer first_;   // m, or the momentum buffer
  Buffer second_;  // v
};

// sqrt(sum of squares), added up in double in an order that depends on `count` alone. Squares of
// finite floats cannot overflow a double, so the result is finite exactly if every gradient is: one
// pass answers both questions that are asked before an update.
double global_norm(const Context& context, const float* gradients, std::int64_t count);

}  // namespace rk
