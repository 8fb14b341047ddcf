#include "losses/proxy.h"

#include "engine/device/dispatch.h"
#include "kernels/cpu/rows_cpu.h"
#include "kernels/rows/proxy_rows.h"
#include "losses/cuda/proxy.h"
#include "losses/frame/proxy_matrix.h"
#include "losses/frame/similarity.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

template <class S> class ProxyLoss : public Loss<S> {
 public:
  explicit ProxyLoss(bool classes_by_items)
      : classes_by_items_(classes_by_items), matrix_(classes_by_items) {}

  void plan(const Context& context, const LossShape& shape) override {
    matrix_.plan(shape);
    present_.resize(static_cast<std::size_t>(shape.classes));
    threads_ = context.threads();
    const std::int64_t rows = classes_by_items_ ? shape.classes : shape.rows;
    losses_.resize(static_cast<std::size_t>(rows));
    scratch_bytes_ = scratch(static_cast<int>(classes_by_items_ ? shape.rows : shape.classes));
    scratch_ = Buffer(static_cast<std::size_t>(scratch_bytes_ * threads_));
  }

  void run(const Context& context, const LossInput<S>& input, LossOutput<S>& output) final {
    check_finite(context, input);
    output.valid_queries = input.rows;
    output.loss = 0;
    if (input.rows == 0) {
      std::fill_n(output.grad_proxies, input.classes * input.dim, S(0));
      return;
    }
    matrix_.forward(context, input);
    std::fill(present_.begin(), present_.end(), std::uint8_t{0});
    for (std::int64_t i = 0; i < input.rows; ++i) {
      present_[static_cast<std::size_t>(input.labels[i])] = 1;
    }
    const std::int64_t rows = classes_by_items_ ? input.classes : input.rows;
    const auto classes_present = static_cast<S>(std::count(present_.begin(), present_.end(), 1));
    run_rows(std::min(threads_, context.threads()), rows, nullptr, scratch_.as<std::byte>(),
             scratch_bytes_, [&](const SerialTeam& team, std::int64_t r, std::byte* memory) {
               row(team, input, r, classes_present, matrix_.row(r),
                   &losses_[static_cast<std::size_t>(r)], memory);
             });
    for (std::int64_t r = 0; r < rows; ++r) output.loss += losses_[static_cast<std::size_t>(r)];
    output.loss *= value_weight(input);
    matrix_.backward(context, input, output.grad, output.grad_proxies);
  }

  std::int64_t bytes() const final {
    return matrix_.bytes() + static_cast<std::int64_t>(scratch_.bytes() + present_.size() +
                                                       losses_.size() * sizeof(S));
  }

 protected:
  virtual std::int64_t scratch(int columns) const = 0;
  virtual double value_weight(const LossInput<S>& input) const = 0;
  // `scores` are overwritten by their gradient.
  virtual void row(const SerialTeam& team, const LossInput<S>& input, std::int64_t r,
                   S classes_present, S* scores, S* loss, std::byte* memory) const = 0;
  bool present(std::int64_t c) const { return present_[static_cast<std::size_t>(c)] != 0; }

 private:
  bool classes_by_items_;
  ProxyMatrix<S> matrix_;
  std::vector<std::uint8_t> present_;  // whether the batch has a class
  std::vector<S> losses_;
  Buffer scratch_;
  std::int64_t scratch_bytes_ = 0;
  int threads_ = 1;
};

template <class S> class Nsl final : public ProxyLoss<S> {
 public:
  explicit Nsl(const LossValues& values)
      : ProxyLoss<S>(false), scale_(static_cast<S>(values.number("scale"))) {}

 private:
  std::int64_t scratch(int columns) const override { return SoftmaxRow<S>::scratch(columns); }
  double value_weight(const LossInput<S>& input) const override {
    return 1 / static_cast<double>(input.rows);
  }
  void row(const SerialTeam& team, const LossInput<S>& input, std::int64_t r, S, S* scores, S* loss,
           std::byte* memory) const override {
    SoftmaxRow<S>::row(team, scale_, scores, static_cast<int>(input.classes),
                       static_cast<int>(input.labels[r]), static_cast<S>(value_weight(input)),
                       scores, loss, memory);
  }

  S scale_;
};

template <class S>
typename ProxyAnchorRow<S>::Params proxy_anchor_params(const LossValues& values) {
  return {.margin = static_cast<S>(values.number("margin")),
          .alpha = static_cast<S>(values.number("alpha"))};
}

template <class S> class ProxyAnchor final : public ProxyLoss<S> {
 public:
  explicit ProxyAnchor(const LossValues& values)
      : ProxyLoss<S>(true), params_(proxy_anchor_params<S>(values)) {}

 private:
  std::int64_t scratch(int columns) const override { return ProxyAnchorRow<S>::scratch(columns); }
  double value_weight(const LossInput<S>&) const override { return 1; }
  void row(const SerialTeam& team, const LossInput<S>& input, std::int64_t r, S classes_present,
           S* scores, S* loss, std::byte* memory) const override {
    const S positive = this->present(r) ? 1 / classes_present : S(0);
    ProxyAnchorRow<S>::row(team, params_, scores, static_cast<int>(input.rows), input.labels, r,
                           positive, 1 / static_cast<S>(input.classes), scores, loss, memory);
  }

  typename ProxyAnchorRow<S>::Params params_;
};

Initial nsl_start(std::int64_t, std::int64_t dim) {
  return {Initial::Kind::kUniform, 1 / std::sqrt(static_cast<double>(dim))};
}

Initial proxy_anchor_start(std::int64_t classes, std::int64_t) {
  return {Initial::Kind::kNormal, std::sqrt(2 / static_cast<double>(classes))};
}

// Null in a build without CUDA.
constexpr DeviceLossMaker* nsl_on_device() {
  if constexpr (kHasCuda) {
    return [](const CudaContext& cuda, const LossValues& values) {
      return make_device_nsl(cuda, static_cast<float>(values.number("scale")));
    };
  } else {
    return nullptr;
  }
}

constexpr DeviceLossMaker* proxy_anchor_on_device() {
  if constexpr (kHasCuda) {
    return [](const CudaContext& cuda, const LossValues& values) {
      return make_device_proxy_anchor(cuda, proxy_anchor_params<float>(values));
    };
  } else {
    return nullptr;
  }
}

template <class S, template <class> class L>
std::unique_ptr<Loss<S>> make(const LossValues& values) {
  return std::make_unique<L<S>>(values);
}

}  // namespace

LossEntry nsl_entry() {
  return {.name = "nsl",
          .kind = LossKind::kProxies,
          .summary = "normalised softmax over learnable class proxies",
          .paper =
              "Oi, Kawakami, Naemura: Analysis of Evaluation Metrics with the Distance between "
              "Positive Pairs and Negative Pairs in Deep Metric Learning, 2021; eq. 3",
          .parameters = {number_parameter("scale", "10", 1e-3, 1e4, "factor of the similarities")},
          .make_float = make<float, Nsl>,
          .make_double = make<double, Nsl>,
          .make_device = nsl_on_device(),
          .proxy_start = nsl_start};
}

LossEntry proxy_anchor_entry() {
  return {
      .name = "proxy_anchor",
      .kind = LossKind::kProxies,
      .summary = "soft hardest items of every class proxy",
      .paper = "Kim, Kim, Cho, Kwak: Proxy Anchor Loss for Deep Metric Learning, CVPR 2020; eq. 4",
      .parameters = {number_parameter("margin", "0.1", -2, 2, "margin of the similarities"),
                     number_parameter("alpha", "32", 1e-3, 1e4, "factor of the similarities")},
      .make_float = make<float, ProxyAnchor>,
      .make_double = make<double, ProxyAnchor>,
      .make_device = proxy_anchor_on_device(),
      .proxy_start = proxy_anchor_start};
}

}  // namespace rk
