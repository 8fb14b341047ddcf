#include "losses/scores/rambo_scores.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/device/buffer.h"
#include "engine/device/packed_memory.h"
#include "kernels/launch_on_gpu.h"
#include "losses/frame/pending_loss.h"
#include "losses/scores/gpu_ranking.h"
#include "losses/scores/ranking.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

namespace rk {
namespace {

// What is ranked: the scores of each class separately, all scores together, or both.
template <class S> struct RankedScores {
  typename Ranking<S>::Params params;
  double beta = 0;  // share of the loss over all scores; the loss by class has 1 - beta
  bool by_class() const { return beta < 1; }
  bool overall() const { return beta > 0; }
};

// Counts of the positives of a batch.
struct Positives {
  std::vector<std::int64_t> of_class;
  std::int64_t classes = 0;  // with a positive
  std::int64_t all = 0;

  template <class S> void count(const LossInput<S>& input) {
    std::fill(of_class.begin(), of_class.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < input.rows; ++i) {
      for (std::int64_t c = 0; c < input.classes; ++c) {
        of_class[at(c)] += input.targets[i * input.classes + c] != 0;
      }
    }
    const auto end = of_class.begin() + input.classes;
    classes = std::count_if(of_class.begin(), end, [](std::int64_t count) { return count > 0; });
    all = std::accumulate(of_class.begin(), end, std::int64_t{0});
  }
};

// The loss and its gradient on one device.
template <class S> class Ranker {
 public:
  Ranker() = default;
  Ranker(const Ranker&) = delete;
  Ranker& operator=(const Ranker&) = delete;
  virtual ~Ranker() = default;

  // Reads the targets of a batch, on the host.
  virtual void prepare(const Context& context, const LossInput<S>& input) = 0;
  virtual void run(const Context& context, const LossInput<S>& input, const Positives& positives,
                   S* grad, double* loss) = 0;
  virtual std::int64_t bytes() const = 0;
};

template <class S> class CpuRanker final : public Ranker<S> {
 public:
  CpuRanker(const Context& context, const RankedScores<S>& what, const LossShape& shape)
      : what_(what) {
    const std::int64_t all = shape.rows * shape.classes;
    ranking_.allocate(context, what.overall() ? all : shape.rows);
    targets_ = Buffer::of<std::uint8_t>(all);
    grad_by_class_ = Buffer::of<S>(what.by_class() && what.overall() ? all : 0);
  }
  void prepare(const Context& /*context*/, const LossInput<S>& input) override {
    std::copy_n(input.targets, input.rows * input.classes, targets_.as<std::uint8_t>());
  }

  void run(const Context& context, const LossInput<S>& input, const Positives& positives, S* grad,
           double* loss) override {
    const std::int64_t all = input.rows * input.classes;
    const double beta = what_.beta;
    *loss = 0;
    if (positives.all == 0) {
      std::fill_n(grad, all, S(0));
      return;
    }
    if (!what_.overall()) {
      *loss = (1 - beta) * by_class(context, input, positives, grad);
      return;
    }
    *loss = beta * ranking_.run(context, what_.params, all, 1, input.scores, targets(), beta, grad);
    if (!what_.by_class()) return;
    S* added = grad_by_class_.template as<S>();
    *loss += (1 - beta) * by_class(context, input, positives, added);
    parallel_for(context.threads(), all, [&](std::int64_t i, int) { grad[i] += added[i]; });
  }

  std::int64_t bytes() const override {
    return ranking_.bytes() + static_cast<std::int64_t>(grad_by_class_.bytes() + targets_.bytes());
  }

 private:
  const std::uint8_t* targets() const { return targets_.as<std::uint8_t>(); }

  // Returns the mean over the classes with a positive; writes all of grad.
  double by_class(const Context& context, const LossInput<S>& input, const Positives& positives,
                  S* grad) {
    const std::int64_t classes = input.classes;
    if (positives.classes < classes) std::fill_n(grad, input.rows * classes, S(0));
    const double share = (1 - what_.beta) / static_cast<double>(positives.classes);
    double loss = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      if (positives.of_class[at(c)] == 0) continue;
      loss += ranking_.run(context, what_.params, input.rows, classes, input.scores + c,
                           targets() + c, share, grad + c);
    }
    return loss / static_cast<double>(positives.classes);
  }

  RankedScores<S> what_;
  Ranking<S> ranking_;
  Buffer targets_;        // of the batch prepared last
  Buffer grad_by_class_;  // used if both losses have a share
};

// Ranks all classes in one sort. Uploads lists of the positives: sorted by class, then item, as
// indices into [C, N]; and sorted by item, as indices into [N, C].
class GpuRanker final : public Ranker<float> {
 public:
  GpuRanker(const Context& context, const RankedScores<float>& what, const LossShape& shape)
      : what_(what) {
    const std::int64_t all = shape.rows * shape.classes;
    ranking_.allocate(context, all, what.by_class() && shape.classes > 1);
    const auto list = static_cast<std::size_t>(all) * sizeof(std::uint32_t);
    by_class_ = packed_.add(what.by_class() ? list : 0);
    overall_ = packed_.add(what.overall() ? list : 0);
    targets_ = packed_.add(static_cast<std::size_t>(all));
    packed_.allocate(context);
  }

  void prepare(const Context& context, const LossInput<float>& input) override {
    const std::int64_t classes = input.classes;
    const std::int64_t all = input.rows * classes;
    packed_.begin();
    std::copy_n(input.targets, all, packed_.host<std::uint8_t>(targets_));
    if (what_.by_class()) {
      auto* own = packed_.host<std::uint32_t>(by_class_);
      for (std::int64_t c = 0; c < classes; ++c) {
        for (std::int64_t i = 0; i < input.rows; ++i) {
          if (input.targets[i * classes + c] == 0) continue;
          *own++ = static_cast<std::uint32_t>(c * input.rows + i);
        }
      }
    }
    if (what_.overall()) {
      auto* own = packed_.host<std::uint32_t>(overall_);
      for (std::int64_t i = 0; i < all; ++i) {
        if (input.targets[i] != 0) *own++ = static_cast<std::uint32_t>(i);
      }
    }
    packed_.send(context);
  }

  void run(const Context& context, const LossInput<float>& input, const Positives& positives,
           float* grad, double* loss) override {
    const std::int64_t all = input.rows * input.classes;
    if (positives.all == 0) {
      context.clear(grad, static_cast<std::size_t>(all) * sizeof(float));
      context.clear(loss, sizeof(double));
      return;
    }
    RankingInput ranked{.positives = positives.all,
                        .lambda = what_.params.lambda,
                        .margin = what_.params.margin,
                        .scores = input.scores,
                        .targets = packed_.device<std::uint8_t>(targets_),
                        .grad = grad};
    if (what_.overall()) {
      ranked.items = all;
      ranked.segments = 1;
      ranked.own = packed_.device<std::uint32_t>(overall_);
      ranked.weight = what_.beta;
      ranking_.rank(context, ranked, what_.beta, loss);
    }
    if (what_.by_class()) {
      ranked.items = input.rows;
      ranked.segments = input.classes;
      ranked.own = packed_.device<std::uint32_t>(by_class_);
      ranked.weight = (1 - what_.beta) / static_cast<double>(positives.classes);
      ranked.accumulate = what_.overall();
      ranking_.rank(context, ranked, ranked.weight, loss);
    }
  }

  std::int64_t bytes() const override { return ranking_.bytes() + packed_.bytes(); }

 private:
  RankedScores<float> what_;
  GpuRanking ranking_;
  std::size_t by_class_ = 0, overall_ = 0, targets_ = 0;  // offsets in packed_
  PackedMemory packed_;
};

template <class S>
std::unique_ptr<Ranker<S>> make_ranker(const Context& context, const RankedScores<S>& what,
                                       const LossShape& shape) {
  if constexpr (kRunsOnGpu<S>) {
    if (context.on_gpu()) return std::make_unique<GpuRanker>(context, what, shape);
  }
  return std::make_unique<CpuRanker<S>>(context, what, shape);
}

template <class S> class RamboScores final : public Loss<S> {
 public:
  RamboScores(const LossValues& values, double beta)
      : what_{.params = {values.number("lambda"), values.number("margin")}, .beta = beta} {}

  void allocate(const Context& context, const LossShape& shape) override {
    largest_ = shape;
    positives_.of_class.resize(static_cast<std::size_t>(shape.classes));
    loss_.allocate(context);
    ranker_ = make_ranker<S>(context, what_, shape);
  }

  void prepare(const Context& context, const LossInput<S>& input) override {
    expect(input.rows <= largest_.rows && input.classes <= largest_.classes,
           "[loss] expected at most {} rows of {} scores as allocated, got {} of {}", largest_.rows,
           largest_.classes, input.rows, input.classes);
    positives_.count(input);
    ranker_->prepare(context, input);
  }

  void fetch(const Context& context) override {
    loss_.fetch(context, what_.by_class() ? positives_.classes
                                          : std::min<std::int64_t>(positives_.classes, 1));
  }
  LossValue take() override {
    const auto [loss, valid] = loss_.take();
    return {.loss = loss, .valid_queries = valid};
  }
  const double* device_ptr() const override { return loss_.device_ptr(); }

  std::int64_t bytes() const override {
    return ranker_->bytes() + loss_.bytes() +
           static_cast<std::int64_t>(positives_.of_class.size() * sizeof(std::int64_t));
  }

 protected:
  void compute(const Context& context, const LossInput<S>& input,
               const LossGradients<S>& gradients) override {
    ranker_->run(context, input, positives_, gradients.grad, loss_.device_ptr());
  }

 private:
  RankedScores<S> what_;
  LossShape largest_;  // as allocated
  Positives positives_;
  std::unique_ptr<Ranker<S>> ranker_;
  PendingLoss<double> loss_;
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
