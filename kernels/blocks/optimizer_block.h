// The optimizer of training/optimizer.h on a GPU, over the same flat float buffers. Everything that
// changes from step to step is in device memory (StepState), so that a captured step can be
// replayed.
//
//   SquareSums     sums of squares of the gradient, still multiplied by the loss scale
//   FinishNorm     the norm of the gradient without the scale; whether it and the loss are finite;
//                  the number of this update, its bias corrections and its gradient_factor; the
//                  loss scale of the next step
//   OptimizerStep  the gradient times gradient_factor, then Adam, AdamW or SGD; writes nothing if
//                  gradient or loss were not finite
//
// A step that no smaller scale will help halts the run: from then on no step changes anything, so
// the host may learn of it when the next step is already under way.
//
// A dynamic loss scale halves, down to 1, when the gradient is not finite, and doubles, up to 2^24,
// after kGrowthSteps finite steps in a row. Scales are powers of two, so dividing by them rounds
// nothing (denormals aside), and with scale 1 all bits are the same as on the CPU.
//
// Bytes moved, n parameters: SquareSums 4n; OptimizerStep 28n for Adam, 20n for SGD with momentum,
// 12n without.
#pragma once

#include "kernels/block_team.h"
#include "kernels/blocks/optimizer_params.h"
#include "kernels/blocks/optimizer_update.h"
#include "kernels/blocks/step_state.h"
#include "kernels/element.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rk {

// partial: double [blocks()].
struct SquareSums {
  static constexpr int kBlocks = 1024;

  std::int64_t count = 0;
  const float* gradients = nullptr;
  double* partial = nullptr;

  int blocks() const {
    return static_cast<int>(std::min<std::int64_t>(kBlocks, (count + 4095) / 4096));
  }
  template <class Block> RK_FN void operator()(const Block& block) const {
    constexpr int kWidth = kPack<float>;
    const std::int64_t packs = divide_up(count, kWidth);
    const std::int64_t first = packs * block.index() / block.blocks();
    const std::int64_t end = packs * (block.index() + 1) / block.blocks();
    const double sum = team_of(block).sum(static_cast<int>(end - first), [&](int i) {
      const std::int64_t at = (first + i) * kWidth;
      if (at + kWidth <= count) {
        const auto held = load_pack<kWidth>(gradients + at);
        double squares = 0;
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          squares += static_cast<double>(held[k]) * static_cast<double>(held[k]);
        }
        return squares;
      }
      double squares = 0;
      for (std::int64_t j = at; j < count; ++j) {
        squares += static_cast<double>(gradients[j]) * static_cast<double>(gradients[j]);
      }
      return squares;
    });
    if (block.thread() == 0) partial[block.index()] = sum;
  }
};

RK_FN RK_INLINE void adapt_scale(StepState& now) {
  if (!now.finite) {
    now.loss_scale = now.loss_scale > 2.0F ? now.loss_scale / 2.0F : 1.0F;
  } else if (now.good_steps == StepState::kGrowthSteps) {
    const float doubled = now.loss_scale * 2.0F;
    now.loss_scale = doubled < StepState::kLargestScale ? doubled : StepState::kLargestScale;
    now.good_steps = 0;
  }
}

// Computes everything that the update needs from the sum of squares of the gradient, which is
// multiplied by the loss scale, and from the loss, unless that is null; on either device.
RK_FN RK_INLINE void finish_norm(const OptimizerParams& params, double squares, const double* loss,
                                 StepState& now) {
  now.gradient_factor = 1.0F / now.loss_scale;
  now.norm = std::sqrt(squares) * static_cast<double>(now.gradient_factor);
  if (params.clip_norm > 0 && now.norm > params.clip_norm) {
    now.gradient_factor *= static_cast<float>(params.clip_norm / now.norm);
  }
  const bool loss_is_finite = loss == nullptr || *loss - *loss == 0;
  // A norm that is not a number is no smaller either.
  now.finite = now.norm < StepState::kLargestNorm && loss_is_finite && !now.halted;
  if (now.finite) {
    ++now.number;
    ++now.good_steps;
    now.skipped = 0;
    const auto t = static_cast<double>(now.number);
    now.first_correction = 1.0 - std::pow(params.beta1, t);
    now.second_correction = std::sqrt(1.0 - std::pow(params.beta2, t));
  } else {
    now.good_steps = 0;
    ++now.skipped;
    now.halted = now.halted || !loss_is_finite || !now.dynamic_scale ||
                 now.skipped >= StepState::kMostSkipped;
  }
  if (now.dynamic_scale) adapt_scale(now);
}

struct FinishNorm {
  OptimizerParams params;
  int partials = 0;  // SquareSums::blocks()
  const double* partial = nullptr;
  StepState* step = nullptr;
  const double* loss = nullptr;  // of the step; may be null

  int blocks() const { return 1; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const double squares = team_of(block).sum(partials, [&](int i) { return partial[i]; });
    if (block.thread() != 0) return;
    StepState now = *step;
    finish_norm(params, squares, loss, now);
    *step = now;
  }
};

// groups: device memory, sorted, without overlap; parameters in no group stay unchanged. first:
// Adam's m, or the momentum buffer (null for SGD without momentum); second: Adam's v.
struct OptimizerStep {
  static constexpr int kBlockParameters = 4096;

  OptimizerParams params;
  const StepState* step = nullptr;
  const OptimizerGroup* groups = nullptr;
  int group_count = 0;
  std::int64_t count = 0;
  const float* gradients = nullptr;
  float* parameters = nullptr;
  float* first = nullptr;
  float* second = nullptr;

  int blocks() const { return static_cast<int>(divide_up(count, kBlockParameters)); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    if (!step->finite) return;
    const std::int64_t begin = static_cast<std::int64_t>(block.index()) * kBlockParameters;
    const std::int64_t end = std::min(count, begin + kBlockParameters);
    for (int g = first_ending_after(begin); g < group_count && groups[g].begin < end; ++g) {
      const OptimizerGroup group = groups[g];
      const std::int64_t from = std::max(begin, group.begin);
      const std::int64_t to = std::min(end, group.end);
      if (params.kind == OptimizerKind::kSgd) {
        sgd(block, group, from, to);
      } else {
        adam(block, group, from, to);
      }
    }
  }

 private:
  RK_FN RK_INLINE int first_ending_after(std::int64_t at) const {
    int low = 0, high = group_count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (groups[middle].end <= at) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // Calls f.operator()<W>(i) for the elements [i, i + W) of [from, to).
  template <class Block, class F>
  RK_FN RK_INLINE static void for_range(const Block& block, std::int64_t from, std::int64_t to,
                                        F&& f) {
    constexpr int kWidth = kPack<float>;
    const std::int64_t first_pack = std::min(to, round_up(from, kWidth));
    const std::int64_t packs_end = std::max(first_pack, to / kWidth * kWidth);
    const std::int64_t t = block.thread();
    for (std::int64_t i = from + t; i < first_pack; i += Block::kThreads) {
      f.template operator()<1>(i);
    }
    for (std::int64_t i = first_pack + t * kWidth; i < packs_end; i += Block::kThreads * kWidth) {
      f.template operator()<kWidth>(i);
    }
    for (std::int64_t i = packs_end + t; i < to; i += Block::kThreads) f.template operator()<1>(i);
  }

  template <class Block>
  RK_FN RK_INLINE void adam(const Block& block, const OptimizerGroup& group, std::int64_t from,
                            std::int64_t to) const {
    const auto update = AdamUpdate::of(params, group, *step);
    for_range(block, from, to, [&]<int kWidth>(std::int64_t i) {
      auto p = load_pack<kWidth>(parameters + i);
      auto m = load_pack<kWidth>(first + i);
      auto v = load_pack<kWidth>(second + i);
      const auto gradient = load_pack<kWidth>(gradients + i);
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        update.template apply<RootsAroundZero>(gradient[k], p.values[k], m.values[k], v.values[k]);
      }
      store_pack(parameters + i, p);
      store_pack(first + i, m);
      store_pack(second + i, v);
    });
  }

  template <class Block>
  RK_FN RK_INLINE void sgd(const Block& block, const OptimizerGroup& group, std::int64_t from,
                           std::int64_t to) const {
    const auto update = SgdUpdate::of(params, group, *step);
    const bool heavy = params.momentum > 0;
    for_range(block, from, to, [&]<int kWidth>(std::int64_t i) {
      auto p = load_pack<kWidth>(parameters + i);
      const auto gradient = load_pack<kWidth>(gradients + i);
      Pack<float, kWidth> b{};
      if (heavy) b = load_pack<kWidth>(first + i);
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        if (heavy) {
          update.with_momentum(gradient[k], p.values[k], b.values[k]);
        } else {
          update.plain(gradient[k], p.values[k]);
        }
      }
      store_pack(parameters + i, p);
      if (heavy) store_pack(first + i, b);
    });
  }
};

}  // namespace rk
