// Adam (Kingma & Ba 2015), AdamW (Loshchilov & Hutter 2019) and SGD with momentum, by PyTorch's
// formulas, over flat float32 buffers: parameter i, its gradient and its state share index i.
//
//   Adam    g += decay p;   m += (1-b1)(g-m);  v = b2 v + (1-b2) g^2;
//           p -= rate / (1-b1^t) * m / (sqrt(v) / sqrt(1-b2^t) + eps)
//   AdamW   p *= 1 - rate decay, then Adam with decay = 0
//   SGD     g += decay p;   b = momentum b + g;   p -= rate * (b, or with Nesterov g + momentum b)
//
// With OptimizerParams::clip_norm, the gradient g above is the given one times clip_norm / |g| if
// its norm over all parameters exceeds clip_norm (Pascanu et al. 2013).
//
// A group is a range of indices with its own rate factor and decay; frozen parameters have a rate
// of 0, and indices outside all groups do not change. step() allocates nothing and rounds
// identically for any number of threads. With a loss scale of 1, the CPU and a GPU
// (kernels/blocks/optimizer_block.h) also round identically, except for the norm's last digits.
#pragma once

#include "engine/device/context.h"
#include "engine/tape/parameters.h"
#include "kernels/blocks/optimizer_block.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rk {

// How one parameter learns.
struct ParameterPolicy {
  double rate_factor = 1.0;  // factor on the learning rate
  bool decays = true;
  bool learns = true;  // false: no rate, no decay
};

// The rules that give each parameter its policy, by shape and group. Frozen parameters
// (Parameters::freeze) do not learn.
struct LearningPolicy {
  double weight_decay = 0.0;
  double embedding_rate = 1.0;  // factor on the embedding layer's rate
  double proxy_rate = 1.0;      // factor on the rate of a loss's proxies
  bool decays_norms = true;     // false: no weight decay for one-dimensional parameters, that is
                                // biases and batch norm's

  ParameterPolicy of(const Parameters::Entry& entry) const;
};

// The groups of all parameters. By default, weight decay applies to all of them, including biases,
// batch norm's and proxies, as in plain PyTorch and the authors' code.
std::vector<OptimizerGroup> optimizer_groups(const Parameters& parameters,
                                             const LearningPolicy& learning);

class Optimizer {
 public:
  struct State {
    std::string_view name;  // PyTorch's: exp_avg, exp_avg_sq, momentum_buffer
    float* values;          // in the context's memory
    std::int64_t count;
  };

  // `count` elements in each flat buffer. Groups may come in any order but must not overlap. Throws
  // UsageError for values that make no sense (beta outside [0, 1), negative decay, ...).
  Optimizer(const Context& context, const OptimizerParams& params,
            std::vector<OptimizerGroup> groups, std::int64_t count);

  // Computes the norm of `gradients` [count] and, if the norm and the loss (unless null) are
  // finite, updates `parameters` [count] at state->rate. All arguments are in the context's memory;
  // does not wait for a GPU.
  void step(const Context& context, StepState* state, float* parameters, const float* gradients,
            const double* loss = nullptr);

  // All that a checkpoint needs besides the step's number. Zero before the first step.
  std::vector<State> states() const;
  // A state's values on the host: on the CPU the values themselves, else a copy in `room`.
  std::span<float> on_host(const State& state, std::vector<float>& room) const;
  // Writes back the values that on_host() returned, after the caller changed them.
  void put_back(const State& state, std::span<const float> values);
  std::size_t state_bytes() const { return first_.bytes() + second_.bytes(); }

 private:
  void step_on_cpu(const Context& context, StepState& state, float* parameters,
                   const float* gradients, const double* loss);
  void step_on_gpu(const Context& context, StepState* state, float* parameters,
                   const float* gradients, const double* loss);

  OptimizerParams params_;
  std::vector<OptimizerGroup> groups_;  // sorted; neighbours of one setting merged
  std::int64_t count_;
  bool on_gpu_;
  Memory first_;                    // m, or the momentum buffer
  Memory second_;                   // v
  Memory device_groups_, squares_;  // on a GPU
};

// The sum of squares, in double and in an order that depends on `count` alone. Squares of finite
// floats cannot overflow a double, so the result is finite exactly if every gradient is. One pass
// thus yields both the norm and the check for finiteness that an update needs.
double square_sum(const Context& context, const float* gradients, std::int64_t count);

}  // namespace rk
