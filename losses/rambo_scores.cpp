#include "losses/rambo_scores.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "engine/device/buffer.h"
#include "losses/frame/device_ranking.h"
#include "losses/frame/packed_memory.h"
#include "losses/frame/ranking.h"
#include "losses/frame/readback.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace rk {
namespace {

// (1 - beta) of the loss by class, beta of the one over all scores.
template <class S> class RamboScores final : public Loss<S> {
 public:
  RamboScores(const LossValues& values, double beta)
      : params_{static_cast<S>(values.number("lambda")), static_cast<S>(values.number("margin"))},
        beta_(beta) {}

  void plan(const Context& context, const LossShape& shape) override {
    capacity_ = shape.rows * shape.classes;
    positives_.resize(static_cast<std::size_t>(shape.classes));
    loss_.plan(context);
    if (context.on_gpu()) {
      device_ranking_.plan(context, capacity_, by_class() && shape.classes > 1);
      const auto all = static_cast<std::size_t>(capacity_);
      packed_ = PackedMemory();
      by_class_ = packed_.add(by_class() ? all * sizeof(std::uint32_t) : 0);
      overall_ = packed_.add(overall() ? all * sizeof(std::uint32_t) : 0);
      targets_ = packed_.add(all);
      packed_.plan(context);
    } else {
      ranking_.plan(context, overall() ? capacity_ : shape.rows);
      grad_by_class_ = Buffer::of<S>(by_class() && overall() ? capacity_ : 0);
    }
  }

  void prepare(const Context& context, const LossInput<S>& input) override {
    const std::int64_t all = input.rows * input.classes;
    expect(all <= capacity_, "[loss] expected at most {} scores as planned, got {}", capacity_,
           all);
    count_positives(input);
    if (context.on_gpu()) pack(context, input);
  }

  LossValue result(const Context& context) override {
    LossValue value;
    value.loss = loss_.read(context);
    value.valid_queries = by_class() ? ranked_ : std::min<std::int64_t>(ranked_, 1);
    return value;
  }

  std::int64_t bytes() const override {
    return ranking_.bytes() + device_ranking_.bytes() + packed_.bytes() + loss_.bytes() +
           static_cast<std::int64_t>(grad_by_class_.bytes() +
                                     positives_.size() * sizeof(std::int64_t));
  }

 protected:
  void compute(const Context& context, const LossInput<S>& input,
               const LossGradients<S>& gradients) override {
    if constexpr (kRunsOnGpu<S>) {
      if (context.on_gpu()) return rank_on_gpu(context, input, gradients.grad);
    }
    *loss_.place() = rank_on_cpu(context, input, gradients.grad);
  }

 private:
  bool by_class() const { return beta_ < 1; }
  bool overall() const { return beta_ > 0; }

  void count_positives(const LossInput<S>& input) {
    const std::int64_t classes = input.classes;
    std::fill(positives_.begin(), positives_.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < input.rows; ++i) {
      for (std::int64_t c = 0; c < classes; ++c) {
        positives_[static_cast<std::size_t>(c)] += input.targets[i * classes + c] != 0;
      }
    }
    const auto end = positives_.begin() + classes;
    ranked_ = std::count_if(positives_.begin(), end, [](std::int64_t count) { return count > 0; });
    all_positives_ = std::accumulate(positives_.begin(), end, std::int64_t{0});
  }

  // A GPU ranks all classes in one sort, from lists of the positives: by class, then by item, as
  // numbers of [C, N]; and by item, as numbers of [N, C].
  void pack(const Context& context, const LossInput<S>& input) {
    const std::int64_t classes = input.classes;
    const std::int64_t all = input.rows * classes;
    packed_.begin(context);
    std::copy_n(input.targets, all, packed_.template host<std::uint8_t>(targets_));
    if (by_class()) {
      auto* own = packed_.template host<std::uint32_t>(by_class_);
      for (std::int64_t c = 0; c < classes; ++c) {
        for (std::int64_t i = 0; i < input.rows; ++i) {
          if (input.targets[i * classes + c] == 0) continue;
          *own++ = static_cast<std::uint32_t>(c * input.rows + i);
        }
      }
    }
    if (overall()) {
      auto* own = packed_.template host<std::uint32_t>(overall_);
      for (std::int64_t i = 0; i < all; ++i) {
        if (input.targets[i] != 0) *own++ = static_cast<std::uint32_t>(i);
      }
    }
    packed_.send(context);
  }

  void rank_on_gpu(const Context& context, const LossInput<S>& input, S* grad) const {
    const std::int64_t all = input.rows * input.classes;
    double* loss = loss_.place();
    if (all_positives_ == 0) {
      context.clear(grad, static_cast<std::size_t>(all) * sizeof(S));
      context.clear(loss, sizeof(double));
      return;
    }
    DeviceRanking::Batch batch{.positives = all_positives_,
                               .lambda = params_.lambda,
                               .margin = params_.margin,
                               .scores = input.scores,
                               .targets = packed_.template device<std::uint8_t>(targets_),
                               .grad = grad,
                               .loss = loss};
    if (overall()) {
      batch.items = all;
      batch.segments = 1;
      batch.own = packed_.template device<std::uint32_t>(overall_);
      batch.weight = static_cast<S>(beta_);
      batch.share = beta_;
      device_ranking_.launch(context, batch);
    }
    if (by_class()) {
      batch.items = input.rows;
      batch.segments = input.classes;
      batch.own = packed_.template device<std::uint32_t>(by_class_);
      batch.share = (1 - beta_) / static_cast<double>(ranked_);
      batch.weight = static_cast<S>(batch.share);
      batch.accumulate = overall();
      device_ranking_.launch(context, batch);
    }
  }

  double rank_on_cpu(const Context& context, const LossInput<S>& input, S* grad) {
    const std::int64_t all = input.rows * input.classes;
    if (ranked_ == 0) {
      std::fill_n(grad, all, S(0));
      return 0;
    }
    double loss = 0;
    if (overall()) {
      loss += beta_ * ranking_.run(context, params_, all, 1, input.scores, input.targets,
                                   static_cast<S>(beta_), grad);
    }
    if (!by_class()) return loss;
    if (!overall()) return (1 - beta_) * loss_by_class(context, input, grad);
    S* added = grad_by_class_.template as<S>();
    loss += (1 - beta_) * loss_by_class(context, input, added);
    parallel_for(context.threads(), all, [&](std::int64_t i, int) { grad[i] += added[i]; });
    return loss;
  }

  // The mean over the classes with a positive; writes all of grad.
  double loss_by_class(const Context& context, const LossInput<S>& input, S* grad) {
    const std::int64_t classes = input.classes;
    if (ranked_ < classes) std::fill_n(grad, input.rows * classes, S(0));
    const S share = static_cast<S>((1 - beta_) / static_cast<double>(ranked_));
    double loss = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      if (positives_[static_cast<std::size_t>(c)] == 0) continue;
      loss += ranking_.run(context, params_, input.rows, classes, input.scores + c,
                           input.targets + c, share, grad + c);
    }
    return loss / static_cast<double>(ranked_);
  }

  typename Ranking<S>::Params params_;
  double beta_;
  std::int64_t capacity_ = 0;            // scores
  std::vector<std::int64_t> positives_;  // of every class
  std::int64_t ranked_ = 0;              // classes with a positive
  std::int64_t all_positives_ = 0;
  Readback<double> loss_;
  // On the CPU.
  Ranking<S> ranking_;
  Buffer grad_by_class_;  // where both losses have a share
  // On a GPU.
  DeviceRanking device_ranking_;
  std::size_t by_class_ = 0, overall_ = 0, targets_ = 0;  // pieces of
  PackedMemory packed_;
};

template <class S, int kBeta> std::unique_ptr<Loss<S>> make(const LossValues& values) {
  return std::make_unique<RamboScores<S>>(values, kBeta);
}

template <class S> std::unique_ptr<Loss<S>> make_mixed(const LossValues& values) {
  return std::make_unique<RamboScores<S>>(values, values.number("beta"));
}

LossEntry entry(std::string name, const std::string& equation, std::string summary) {
  return {
      .name = std::move(name),
      .kind = LossKind::kScores,
      .summary = std::move(summary),
      .paper =
          "Rolinek, Musil, Paulus, Vlastelica, Michaelis, Martius: Optimizing Rank-based "
          "Metrics with Blackbox Differentiation, CVPR 2020; eq. " +
          equation,
      .parameters = {number_parameter("lambda", "0.5", 1e-3, 1e6,
                                      "how far scores move in the backward pass"),
                     number_parameter("margin", "0.1", 0, 2, "between positives and negatives")},
      .differentiable = false};
}

}  // namespace

LossEntry rambo_map_entry() {
  LossEntry out =
      entry("rambo_map", "14, 21-22", "average precision of each class's ranking of all items");
  out.make_float = make<float, 0>;
  out.make_double = make<double, 0>;
  return out;
}

LossEntry rambo_apc_entry() {
  LossEntry out = entry("rambo_apc", "14, 23", "average precision of one ranking of all scores");
  out.make_float = make<float, 1>;
  out.make_double = make<double, 1>;
  return out;
}

LossEntry rambo_map_apc_entry() {
  LossEntry out = entry("rambo_map_apc", "14, 21-23", "rambo_map and rambo_apc together");
  out.parameters.push_back(
      number_parameter("beta", "0.5", 0, 1, "share of rambo_apc; rambo_map has the rest"));
  out.make_float = make_mixed<float>;
  out.make_double = make_mixed<double>;
  return out;
}

}  // namespace rk
