// Adam (Kingma & Ba 2015), AdamW (Loshchilov & Hutter 2019) and SGD with momentum, by PyTorch's
// formulas, over flat float32 buffers: parameter i, its gradient and its state share index i.
//
//   Adam    g += decay p;   m += (1-b1)(g-m);  v = b2 v + (1-b2) g^2;
//           p -= rate / (1-b1^t) * m / (sqrt(v) / sqrt(1-b2^t) + eps)
//   AdamW   p *= 1 - rate decay, then Adam with decay = 0
//   SGD     g += decay p;   b = momentum b + g;   p -= rate * (b, or with Nesterov g + momentum b)
//
// With OptimizerParams::clip_norm the gradient g above is the given one, times clip_norm / |g|
// where its norm over all parameters is more (Pascanu et al. 2013).
//
// A group is a range of indices with its own rate factor and decay; a parameter that does not learn
// has a rate of 0, and an index in no group stays as it is.
// step() allocates nothing and rounds alike for any number of threads, and with a loss scale of 1
// the CPU and a GPU (kernels/blocks/optimizer_block.h) round alike but for the norm's last digits.
#pragma once

#include "engine/device/context.h"
#include "engine/tape/parameters.h"
#include "kernels/blocks/optimizer_block.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

// How one parameter learns.
struct ParameterPolicy {
  double rate_factor = 1.0;  // of the learning rate
  bool decays = true;
  bool learns = true;  // false: no rate, no decay
};

// The rules that give each parameter its policy, by its name, shape and place.
struct LearningPolicy {
  double weight_decay = 0.0;
  double embedding_rate = 1.0;  // factor of the embedding layer's rate
  double proxy_rate = 1.0;      // and of that of a loss's proxies
  bool decays_norms = true;     // false: parameters of one dimension, which are biases and batch
                                // norm's, are not pulled towards zero
  std::vector<std::string> frozen;  // beginnings of the names of parameters that do not learn

  ParameterPolicy of(const Parameters::Entry& entry) const;
};

// The groups of all parameters. By default weight decay holds for every one, biases, batch norm's
// and proxies included, as plain PyTorch and the authors' code have it.
std::vector<OptimizerGroup> optimizer_groups(const Parameters& parameters,
                                             const LearningPolicy& learning);

class Optimizer {
 public:
  struct State {
    std::string_view name;  // PyTorch's: exp_avg, exp_avg_sq, momentum_buffer
    float* values;          // in the context's memory
    std::int64_t count;
  };

  // `count` elements in each flat buffer. Groups may come in any order but must not overlap.
  // Throws UsageError where a number cannot be meant (beta outside [0, 1), negative decay, ...).
  Optimizer(const Context& context, const OptimizerParams& params,
            std::vector<OptimizerGroup> groups, std::int64_t count);

  // The norm of `gradients` [count] and, where it and the loss (unless null) are finite, the update
  // of `parameters` [count], by state->rate. All of it lies in the context's memory, and nobody
  // waits for a GPU.
  void step(const Context& context, StepState* state, float* parameters, const float* gradients,
            const double* loss = nullptr) const;

  // All that a checkpoint needs beside the step's number. Zero before the first step.
  std::vector<State> states() const;
  // A state's values on the host: themselves on the CPU, a copy in `room` of a GPU's.
  std::span<float> on_host(const State& state, std::vector<float>& room) const;
  // What on_host() gave, after it was changed there.
  void put_back(const State& state, std::span<const float> values);
  std::size_t state_bytes() const { return first_.bytes() + second_.bytes(); }

 private:
  void step_on_cpu(const Context& context, StepState& state, float* parameters,
                   const float* gradients, const double* loss) const;
  void step_on_gpu(const Context& context, StepState* state, float* parameters,
                   const float* gradients, const double* loss) const;

  OptimizerParams params_;
  std::vector<OptimizerGroup> groups_;  // sorted; neighbours of one setting merged
  std::int64_t count_;
  bool on_gpu_;
  Memory first_;                    // m, or the momentum buffer
  Memory second_;                   // v
  Memory device_groups_, squares_;  // on a GPU
};

// The sum of squares, in double and in an order that depends on `count` alone. Squares of finite
// floats cannot overflow a double, so the result is finite exactly if every gradient is: one pass
// answers both questions that are asked before an update, how long the gradient is and whether it
// is finite.
double square_sum(const Context& context, const float* gradients, std::int64_t count);

}  // namespace rk
