#include "training/optimizer.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "kernels/flush_denormals.h"
#include "kernels/launch.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace rk {
namespace {

// The buffers must not overlap (not checked: the engine lays them out).
void adam(const AdamUpdate& update, std::int64_t begin, std::int64_t end, float* __restrict p,
          const float* __restrict g, float* __restrict m, float* __restrict v) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) update.apply<Roots>(g[i], p[i], m[i], v[i]);
}

void sgd(const SgdUpdate& update, std::int64_t begin, std::int64_t end, float* __restrict p,
         const float* __restrict g) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) update.plain(g[i], p[i]);
}

void sgd(const SgdUpdate& update, std::int64_t begin, std::int64_t end, float* __restrict p,
         const float* __restrict g, float* __restrict b) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) update.with_momentum(g[i], p[i], b[i]);
}

void check(const OptimizerParams& params) {
  if (!(params.beta1 >= 0 && params.beta1 < 1) || !(params.beta2 >= 0 && params.beta2 < 1)) {
    fail<UsageError>("optimizer: betas must lie in [0, 1), got {} and {}", params.beta1,
                     params.beta2);
  }
  // Zero would give 0 / 0 for a parameter whose gradient is always zero (padding is one).
  if (!(params.eps > 0 && std::isfinite(params.eps))) {
    fail<UsageError>("optimizer: eps must be above 0, got {}", params.eps);
  }
  if (!(params.momentum >= 0 && params.momentum < 1)) {
    fail<UsageError>("optimizer: momentum must lie in [0, 1), got {}", params.momentum);
  }
  if (params.nesterov && params.momentum == 0) {
    fail<UsageError>("optimizer: nesterov needs a momentum above 0");
  }
  if (!(params.clip_norm >= 0 && std::isfinite(params.clip_norm))) {
    fail<UsageError>("optimizer: the norm to clip at must be >= 0, got {}", params.clip_norm);
  }
}

// Sorts and checks groups, drops empty ones and merges neighbours with equal settings.
std::vector<OptimizerGroup> tidy(std::vector<OptimizerGroup> groups, std::int64_t count) {
  std::erase_if(groups, [](const OptimizerGroup& group) { return group.begin == group.end; });
  std::sort(groups.begin(), groups.end(),
            [](const OptimizerGroup& a, const OptimizerGroup& b) { return a.begin < b.begin; });
  std::vector<OptimizerGroup> out;
  for (const OptimizerGroup& group : groups) {
    if (!(group.weight_decay >= 0 && std::isfinite(group.weight_decay))) {
      fail<UsageError>("optimizer: weight decay must be >= 0, got {}", group.weight_decay);
    }
    if (!(group.rate_factor >= 0 && std::isfinite(group.rate_factor))) {
      fail<UsageError>("optimizer: a group's rate factor must be >= 0, got {}", group.rate_factor);
    }
    expect(group.begin >= 0 && group.begin < group.end && group.end <= count,
           "[optimizer] expected a group inside [0, {}), got [{}, {})", count, group.begin,
           group.end);
    expect(out.empty() || out.back().end <= group.begin,
           "[optimizer] expected groups that do not overlap, got one at {}", group.begin);
    if (!out.empty() && out.back().end == group.begin &&
        out.back().rate_factor == group.rate_factor &&
        out.back().weight_decay == group.weight_decay) {
      out.back().end = group.end;
    } else {
      out.push_back(group);
    }
  }
  return out;
}

// Not inlined, so that it is compiled only once: a compiler may add in another order at another
// place of call.
[[gnu::noinline]] double squares_of(const float* values, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return sum;
}

}  // namespace

ParameterPolicy LearningPolicy::of(const Parameters::Entry& entry) const {
  ParameterPolicy policy;
  policy.learns = !entry.frozen;
  policy.decays = decays_norms || entry.shape.rank() != 1;
  if (entry.group == ParameterGroup::kEmbedding) policy.rate_factor = embedding_rate;
  if (entry.group == ParameterGroup::kProxies) policy.rate_factor = proxy_rate;
  return policy;
}

std::vector<OptimizerGroup> optimizer_groups(const Parameters& parameters,
                                             const LearningPolicy& learning) {
  std::vector<OptimizerGroup> groups;
  const auto& entries = parameters.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    // Up to the next parameter: the padding stays zero, and neighbours can be merged.
    const std::int64_t end = i + 1 < entries.size()
                                 ? entries[i + 1].offset
                                 : static_cast<std::int64_t>(parameters.flat_elements());
    const ParameterPolicy policy = learning.of(entries[i]);
    groups.push_back({entries[i].offset, end, policy.learns ? policy.rate_factor : 0.0,
                      policy.learns && policy.decays ? learning.weight_decay : 0.0});
  }
  return groups;
}

Optimizer::Optimizer(const Context& context, const OptimizerParams& params,
                     std::vector<OptimizerGroup> groups, std::int64_t count)
    : params_(params), count_(count), on_gpu_(context.on_gpu()) {
  check(params_);
  groups_ = tidy(std::move(groups), count_);
  const bool is_sgd = params_.kind == OptimizerKind::kSgd;
  const auto zeros = [&] {
    Memory memory = context.allocate<float>(count_);
    context.clear(memory.data(), memory.bytes());
    return memory;
  };
  if (!is_sgd || params_.momentum > 0) first_ = zeros();
  if (!is_sgd) second_ = zeros();
  if (!on_gpu_) return;
  device_groups_ = context.copy_of(groups_);
  squares_ = context.allocate<double>(SquareSums{.count = count_}.blocks());
}

std::vector<Optimizer::State> Optimizer::states() const {
  if (params_.kind != OptimizerKind::kSgd) {
    return {{"exp_avg", first_.as<float>(), count_}, {"exp_avg_sq", second_.as<float>(), count_}};
  }
  if (params_.momentum > 0) return {{"momentum_buffer", first_.as<float>(), count_}};
  return {};
}

std::span<float> Optimizer::on_host(const State& state, std::vector<float>& room) const {
  const auto count = static_cast<std::size_t>(state.count);
  if (!on_gpu_) return {state.values, count};
  room.resize(count);
  const Memory& memory = state.values == first_.as<float>() ? first_ : second_;
  memory.download(room.data(), count * sizeof(float));
  return room;
}

void Optimizer::put_back(const State& state, std::span<const float> values) {
  if (values.data() == state.values) return;
  Memory& memory = state.values == first_.as<float>() ? first_ : second_;
  memory.upload(values.data(), values.size_bytes());
}

void Optimizer::step(const Context& context, StepState* state, float* parameters,
                     const float* gradients, const double* loss) {
  if (on_gpu_) {
    step_on_gpu(context, state, parameters, gradients, loss);
  } else {
    step_on_cpu(context, *state, parameters, gradients, loss);
  }
}

void Optimizer::step_on_gpu(const Context& context, StepState* state, float* parameters,
                            const float* gradients, const double* loss) {
  auto* partial = squares_.as<double>();
  const SquareSums squares{.count = count_, .gradients = gradients, .partial = partial};
  launch(context, squares);
  launch(context, FinishNorm{.params = params_,
                             .partials = squares.blocks(),
                             .partial = partial,
                             .step = state,
                             .loss = loss});
  launch(context, OptimizerStep{.params = params_,
                                .step = state,
                                .groups = device_groups_.as<OptimizerGroup>(),
                                .group_count = static_cast<int>(groups_.size()),
                                .count = count_,
                                .gradients = gradients,
                                .parameters = parameters,
                                .first = first_.as<float>(),
                                .second = second_.as<float>()});
}

// Loops that the compiler vectorises: one reads the gradient for its norm, one updates.
void Optimizer::step_on_cpu(const Context& context, StepState& state, float* parameters,
                            const float* gradients, const double* loss) {
  finish_norm(params_, square_sum(context, gradients, count_), loss, state);
  if (!state.finite) return;
  auto* first = first_.as<float>();
  auto* second = second_.as<float>();
  const auto update = [&](const OptimizerGroup& group, std::int64_t begin, std::int64_t end) {
    if (params_.kind != OptimizerKind::kSgd) {
      adam(AdamUpdate::of(params_, group, state), begin, end, parameters, gradients, first, second);
      return;
    }
    const auto step = SgdUpdate::of(params_, group, state);
    if (params_.momentum == 0) {
      sgd(step, begin, end, parameters, gradients);
    } else {
      sgd(step, begin, end, parameters, gradients, first);
    }
  };
  // Cores split the whole buffer, not each group: threads are woken once per step, however many
  // groups there are.
  parallel_ranges(context.threads(), count_, [&](std::int64_t begin, std::int64_t end, int) {
    // With zero gradients, moments would decay to denormals, which make every step 20 times slower.
    const FlushDenormals flush;
    for (const OptimizerGroup& group : groups_) {
      const std::int64_t from = std::max(begin, group.begin);
      const std::int64_t to = std::min(end, group.end);
      if (from < to) update(group, from, to);
    }
  });
}

double square_sum(const Context& context, const float* gradients, std::int64_t count) {
  // A fixed number of pieces, whatever the number of cores, fixes the order of the additions.
  constexpr std::int64_t kPieces = 512;
  std::array<double, kPieces> sums{};
  parallel_for(context.threads(), kPieces, [&](std::int64_t piece, int) {
    const std::int64_t begin = count * piece / kPieces, end = count * (piece + 1) / kPieces;
    sums[at(piece)] = squares_of(gradients + begin, end - begin);
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace rk
