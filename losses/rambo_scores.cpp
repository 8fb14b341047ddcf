#include "losses/rambo_scores.h"

#include "engine/error.h"
#include "losses/ranking.h"
#include "losses/similarity.h"

#include <algorithm>
#include <vector>

namespace rk {
namespace {

template <class S, bool kByClass> class RamboScores final : public Loss<S> {
 public:
  explicit RamboScores(const LossValues& values)
      : params_{static_cast<S>(values.number("lambda")), static_cast<S>(values.number("margin"))} {}

  void plan(const Context& context, const LossShape& shape) override {
    ranking_.plan(context, kByClass ? shape.rows : shape.rows * shape.classes);
    positives_.resize(static_cast<std::size_t>(shape.classes));
  }

  void run(const Context& context, const LossInput<S>& input, LossOutput<S>& output) override {
    check_finite(context, input);
    const std::int64_t n = input.rows;
    const std::int64_t classes = input.classes;
    std::fill(positives_.begin(), positives_.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t c = 0; c < classes; ++c) {
        positives_[static_cast<std::size_t>(c)] += input.targets[i * classes + c] != 0;
      }
    }
    const auto ranked = classes - std::count(positives_.begin(), positives_.end(), 0);
    output.valid_queries = kByClass ? ranked : std::min<std::int64_t>(ranked, 1);
    output.loss = 0;
    if (ranked == 0 || (kByClass && ranked < classes)) {
      std::fill_n(output.grad, n * classes, S(0));
    }
    if (ranked == 0) return;
    if constexpr (kByClass) {
      const S share = S(1) / static_cast<S>(ranked);
      double precision = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        if (positives_[static_cast<std::size_t>(c)] == 0) continue;
        precision += ranking_.run(context, params_, n, classes, input.scores + c, input.targets + c,
                                  share, output.grad + c);
      }
      output.loss = 1 - precision / static_cast<double>(ranked);
    } else {
      output.loss = 1 - ranking_.run(context, params_, n * classes, 1, input.scores, input.targets,
                                     S(1), output.grad);
    }
  }

  std::int64_t bytes() const override {
    return ranking_.bytes() + static_cast<std::int64_t>(positives_.size() * sizeof(std::int64_t));
  }

 private:
  typename Ranking<S>::Params params_;
  Ranking<S> ranking_;
  std::vector<std::int64_t> positives_;
};

template <class S, bool kByClass> std::unique_ptr<Loss<S>> make(const LossValues& values) {
  return std::make_unique<RamboScores<S, kByClass>>(values);
}

template <bool kByClass> LossEntry entry(std::string name, std::string summary) {
  return {
      .name = std::move(name),
      .kind = LossKind::kScores,
      .summary = std::move(summary),
      .paper =
          "Rolinek, Musil, Paulus, Vlastelica, Michaelis, Martius: Optimizing Rank-based "
          "Metrics with Blackbox Differentiation, CVPR 2020",
      .parameters = {number_parameter("lambda", "0.5", 1e-3, 1e6,
                                      "how far scores move in the backward pass"),
                     number_parameter("margin", "0.1", 0, 2, "between positives and negatives")},
      .make_float = make<float, kByClass>,
      .make_double = make<double, kByClass>,
      .differentiable = false};
}

}  // namespace

LossEntry rambo_map_entry() {
  return entry<true>("rambo_map", "average precision of each class's ranking of all items");
}

LossEntry rambo_apc_entry() {
  return entry<false>("rambo_apc", "average precision of one ranking of all scores");
}

}  // namespace rk
