// One setting of a registered loss on a GPU against the CPU in double. The same cases run on a real
// GPU (tests/cuda) and on the emulated one (tests/host_gpu).
#pragma once

#include "tests/losses/device_rounding.h"
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"
#include "tests/support/within.h"

#include <cstdint>
#include <functional>
#include <span>

namespace rk {

class DeviceLossCase {
 public:
  DeviceLossCase(const std::string& spec, const FloatFunctions& functions)
      : spec_(parse_loss(spec)),
        rounding_(kind() == LossKind::kScores ? DeviceRounding{}
                                              : device_rounding(spec_, functions, kDim)),
        // Planned once, for shapes at least as large as every batch.
        loss_(gpu_, spec_, {.rows = 210, .memory = 140, .dim = kDim, .classes = 60}, false) {}

  void agrees_batch_after_batch() {
    std::uint64_t seed = 0;
    for (const auto& [rows, memory, classes] : {std::tuple{203, 131, 50},
                                                {2, 0, 1},
                                                {64, 0, 16},
                                                {5, 3, 2},
                                                {97, 30, 1},
                                                {150, 140, 2},
                                                {7, 0, 40},
                                                {2, 0, 2},
                                                {203, 0, 60},
                                                {33, 1, 7}}) {
      ++seed;
      expect_agreement(
          batch(rows, memory, classes, seed),
          fmt::format("batch {}: {} rows, {} of memory, {} classes", seed, rows, memory, classes));
    }
  }

  void ranks_ties_alike() {
    for (const std::uint64_t seed : random_seeds(20)) {
      made_up::Wanted wanted = made_up::sizes(kind(), seed);
      wanted.dim = kDim;
      expect_agreement(made_up::tied(kind(), wanted, seed), fmt::format("seed {}", seed));
    }
  }

  // Zero embeddings are no error: their similarity to everything is 0. Not for losses of scores.
  void takes_embeddings_of_zeros() {
    LossData<double> data = batch(33, 20, 5, 2);
    for (const std::int64_t row : {0, 7, 32}) {
      std::fill_n(data.embeddings.begin() + row * kDim, kDim, 0.0);
    }
    if (data.memory > 0) std::fill_n(data.memory_embeddings.begin() + 3 * kDim, kDim, 0.0);
    expect_agreement(data, "zeros");
  }

  // A bound that no error comes near would let wrong code pass. On large batches errors cancel in
  // the mean, and most sigmoids are flat: there, errors are 1e-5 to 1e-2 of the bounds. Where a few
  // pairs lie within the width of a sigmoid or bin, they were 4e-4 to 0.1 of those of the value,
  // 1e-3 to 0.4 of those of the gradient: Reference::share_reached is a third of the least. Not for
  // losses of scores, which are compared without a bound.
  void comes_near_its_bounds() {
    const reference::Reference& reference = reference::reference_of(spec_);
    const double width = 1 / (1 + reference.term(spec_.values).steepness);
    double of_loss = 0, of_gradient = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CounterRandom random(seed, 3, 0);
      LossData<double> data =
          batch(2 + random.below(5), random.below(3), 1 + random.below(3), seed);
      // Similarities then differ by about distance^2 / 2.
      const double distance_of_rows = std::sqrt(width) * std::exp2(4 * random.uniform() - 2);
      for (std::vector<double>* rows : {&data.embeddings, &data.memory_embeddings, &data.proxies}) {
        bring_together(*rows, distance_of_rows);
      }
      const LossResult<double> exact = on_cpu(data);
      const LossResult<float> got = on_device(made_up::as_float(data));
      of_loss = std::max(of_loss, std::abs(got.loss - exact.loss) / allowed_of_loss(exact));
      of_gradient =
          std::max({of_gradient, distance(got.grad, exact.grad) / allowed_of_gradient(exact.grad),
                    distance(got.grad_proxies, exact.grad_proxies) /
                        allowed_of_gradient(exact.grad_proxies)});
    }
    EXPECT_GE(of_loss, reference.share_reached);
    EXPECT_GE(of_gradient, 4 * reference.share_reached);
  }

  // Not for losses with proxies, where every item counts.
  void has_no_loss_without_positives() {
    LossData<double> data = batch(31, 0, 5, 1);
    for (std::size_t i = 0; i < data.labels.size(); ++i) {
      data.labels[i] = static_cast<std::int64_t>(i);
    }
    data.image_ids.clear();
    std::ranges::fill(data.targets, std::uint8_t{0});
    const LossResult<float> got = on_device(made_up::as_float(data));
    EXPECT_EQ(got.valid_queries, 0);
    EXPECT_EQ(got.loss, 0);
    for (const float g : got.grad) ASSERT_EQ(g, 0);
  }

  void gives_the_same_bits_twice() {
    const LossData<float> data = made_up::as_float(batch(90, 40, 20, 3));
    const LossResult<float> first = on_device(data);
    on_device(made_up::as_float(batch(203, 131, 3, 4)));
    const LossResult<float> second = on_device(data);
    EXPECT_EQ(first.loss, second.loss);
    EXPECT_EQ(first.grad, second.grad);
    EXPECT_EQ(first.grad_proxies, second.grad_proxies);
  }

 private:
  static constexpr std::int64_t kDim = 16;

  LossKind kind() const { return spec_.entry->kind; }

  LossResult<float> on_device(const LossData<float>& data) { return loss_(data); }

  template <class S> LossResult<S> on_cpu(const LossData<S>& data) const {
    LossFunction<S> function(context_, spec_, data.shape(), false);
    return function(data);
  }

  // How far float is off where terms cancel is measured on the CPU. The GPU evaluates the same
  // formulas on numbers rounded differently, so it may be off by three times that error plus the
  // bound of every such sum (device_rounding.h). A pair at a hinge may be on its other side than on
  // the CPU, and two items in the other order: what that changes is measured in double, on rows
  // moved by as much as a similarity is rounded.
  void expect_agreement(const LossData<double>& data, const std::string& what) {
    const LossResult<double> exact = on_cpu(data);
    const LossData<float> rounded = made_up::as_float(data);
    const LossResult<float> cpu = on_cpu(rounded);
    const LossResult<float> got = on_device(rounded);
    EXPECT_EQ(got.valid_queries, exact.valid_queries) << what;
    if (kind() == LossKind::kScores) {
      // Ranks may differ between the precisions; within one, the CPU and the GPU rank alike, and
      // add the same quotients up in double.
      EXPECT_NEAR(got.loss, cpu.loss, 1e-11) << what;
      EXPECT_EQ(got.grad, cpu.grad) << what;
      return;
    }
    Spread across;
    if (const auto& own = reference::reference_of(spec_); own.kinked || own.jumps) {
      across = spread_of(
          data, exact, 2 * std::sqrt(kDim) * kUnitRoundoff, 32,
          [&](const LossData<double>& near) { return on_cpu(near); }, std::identity());
    }
    const std::string of = spec_.text() + ", ";
    expect_within(of + "loss", std::abs(got.loss - exact.loss),
                  3 * std::abs(cpu.loss - exact.loss) + across.loss + allowed_of_loss(exact), what);
    expect_within(
        of + "gradient", distance(got.grad, exact.grad),
        3 * distance(cpu.grad, exact.grad) + across.grad + allowed_of_gradient(exact.grad),
        fmt::format("{}, gradient of length {:.2g}", what, norm(exact.grad)));
    if (kind() != LossKind::kProxies) return;
    expect_within(of + "gradient of the proxies", distance(got.grad_proxies, exact.grad_proxies),
                  3 * distance(cpu.grad_proxies, exact.grad_proxies) +
                      allowed_of_gradient(exact.grad_proxies),
                  fmt::format("{}, gradient of length {:.2g}", what, norm(exact.grad_proxies)));
  }

  double allowed_of_loss(const LossResult<double>& exact) const {
    return rounding_.loss * std::max(1.0, std::abs(exact.loss));
  }
  double allowed_of_gradient(const std::vector<double>& exact) const {
    return rounding_.gradient * norm(exact) + 1e-7;
  }

  // Moves unit rows to about `distance` from one point of the sphere.
  static void bring_together(std::vector<double>& rows, double distance) {
    for (std::size_t at = 0; at < rows.size(); at += kDim) {
      const std::span<double> row(rows.data() + at, kDim);
      double square = 0;
      for (std::size_t d = 0; d < kDim; ++d) {
        row[d] = (d % 2 == 0 ? 0.25 : -0.25) + distance * row[d];
        square += row[d] * row[d];
      }
      for (double& x : row) x = static_cast<float>(x / std::sqrt(square));
    }
  }

  LossData<double> batch(std::int64_t rows, std::int64_t memory, std::int64_t classes,
                         std::uint64_t seed) const {
    made_up::Wanted wanted{.rows = rows, .memory = memory, .dim = kDim, .classes = classes};
    if (!takes_memory(kind())) wanted.memory = 0;
    wanted.image_ids = takes_memory(kind()) && seed % 2 == 1;
    return made_up::data(kind(), wanted, seed);
  }

  LossSpec spec_;
  DeviceRounding rounding_;
  Context context_{1};
  Context gpu_{1, Device{.cuda = true}};
  LossFunction<float> loss_;
};

}  // namespace rk
