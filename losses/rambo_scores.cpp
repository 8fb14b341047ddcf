#include "losses/rambo_scores.h"

#include "engine/base/parallel.h"
#include "engine/device/buffer.h"
#include "engine/device/dispatch.h"
#include "losses/cuda/rambo_scores.h"
#include "losses/frame/ranking.h"
#include "losses/frame/similarity.h"

#include <algorithm>
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
    const std::int64_t all = shape.rows * shape.classes;
    ranking_.plan(context, beta_ > 0 ? all : shape.rows);
    positives_.resize(static_cast<std::size_t>(shape.classes));
    grad_by_class_ = Buffer::of<S>(both() ? all : 0);
  }

  void run(const Context& context, const LossInput<S>& input, LossOutput<S>& output) override {
    check_finite(context, input);
    const std::int64_t ranked = count_positives(input);
    const std::int64_t all = input.rows * input.classes;
    output.valid_queries = beta_ < 1 ? ranked : std::min<std::int64_t>(ranked, 1);
    output.loss = 0;
    if (ranked == 0) {
      std::fill_n(output.grad, all, S(0));
      return;
    }
    if (beta_ > 0) {
      output.loss += beta_ * ranking_.run(context, params_, all, 1, input.scores, input.targets,
                                          static_cast<S>(beta_), output.grad);
    }
    if (beta_ == 1) return;
    S* grad = both() ? grad_by_class_.template as<S>() : output.grad;
    output.loss += (1 - beta_) * loss_by_class(context, input, ranked, grad);
    if (!both()) return;
    parallel_for(context.threads(), all, [&](std::int64_t i, int) { output.grad[i] += grad[i]; });
  }

  std::int64_t bytes() const override {
    return ranking_.bytes() + static_cast<std::int64_t>(grad_by_class_.bytes() +
                                                        positives_.size() * sizeof(std::int64_t));
  }

 private:
  bool both() const { return beta_ > 0 && beta_ < 1; }

  // Returns how many classes have a positive.
  std::int64_t count_positives(const LossInput<S>& input) {
    const std::int64_t classes = input.classes;
    std::fill(positives_.begin(), positives_.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < input.rows; ++i) {
      for (std::int64_t c = 0; c < classes; ++c) {
        positives_[static_cast<std::size_t>(c)] += input.targets[i * classes + c] != 0;
      }
    }
    return std::count_if(positives_.begin(), positives_.begin() + classes,
                         [](std::int64_t count) { return count > 0; });
  }

  // The mean over the `ranked` classes with a positive; writes all of grad.
  double loss_by_class(const Context& context, const LossInput<S>& input, std::int64_t ranked,
                       S* grad) {
    const std::int64_t classes = input.classes;
    if (ranked < classes) std::fill_n(grad, input.rows * classes, S(0));
    const S share = static_cast<S>((1 - beta_) / static_cast<double>(ranked));
    double loss = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      if (positives_[static_cast<std::size_t>(c)] == 0) continue;
      loss += ranking_.run(context, params_, input.rows, classes, input.scores + c,
                           input.targets + c, share, grad + c);
    }
    return loss / static_cast<double>(ranked);
  }

  typename Ranking<S>::Params params_;
  double beta_;
  Ranking<S> ranking_;
  std::vector<std::int64_t> positives_;
  Buffer grad_by_class_;  // where both losses have a share
};

template <class S, int kBeta> std::unique_ptr<Loss<S>> make(const LossValues& values) {
  return std::make_unique<RamboScores<S>>(values, kBeta);
}

template <class S> std::unique_ptr<Loss<S>> make_mixed(const LossValues& values) {
  return std::make_unique<RamboScores<S>>(values, values.number("beta"));
}

// kBeta: the share of the loss over all scores; -1 where it is a parameter.
template <int kBeta> constexpr DeviceLossMaker* device_maker() {
  if constexpr (kHasCuda) {
    return [](const CudaContext& cuda, const LossValues& values) {
      return make_device_rambo_scores(cuda, values.number("lambda"), values.number("margin"),
                                      kBeta < 0 ? values.number("beta") : kBeta);
    };
  } else {
    return nullptr;
  }
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
  out.make_device = device_maker<0>();
  return out;
}

LossEntry rambo_apc_entry() {
  LossEntry out = entry("rambo_apc", "14, 23", "average precision of one ranking of all scores");
  out.make_float = make<float, 1>;
  out.make_double = make<double, 1>;
  out.make_device = device_maker<1>();
  return out;
}

LossEntry rambo_map_apc_entry() {
  LossEntry out = entry("rambo_map_apc", "14, 21-23", "rambo_map and rambo_apc together");
  out.parameters.push_back(
      number_parameter("beta", "0.5", 0, 1, "share of rambo_apc; rambo_map has the rest"));
  out.make_float = make_mixed<float>;
  out.make_double = make_mixed<double>;
  out.make_device = device_maker<-1>();
  return out;
}

}  // namespace rk
