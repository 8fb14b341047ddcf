// Whole losses through the code of the GPU, on the one made of the host, against those on the CPU
// in double.
#include "losses/hosted_loss.h"
#include "tests/losses/loss_test.h"

namespace rk {
namespace {

// One device loss for batch after batch, planned once for more than comes.
class DeviceLosses : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::int64_t kDim = 16;
  static constexpr LossShape kLargest{.rows = 210, .memory = 140, .dim = kDim, .classes = 60};

  LossSpec spec_ = parse_loss(GetParam());
  LossKind kind_ = spec_.entry->kind;
  Context context_{1};
  std::unique_ptr<Loss<float>> loss_;

  void SetUp() override {
    if (spec_.entry->make_device == nullptr) GTEST_SKIP() << "no GPU code for it";
    loss_ = make_hosted_loss(0, spec_);
    loss_->plan(context_, kLargest);
  }

  LossResult<float> on_device(const LossData<float>& data) {
    LossResult<float> result;
    result.grad.assign(static_cast<std::size_t>(data.grad_elements(kind_)), NAN);
    result.grad_proxies.assign(static_cast<std::size_t>(data.proxy_elements(kind_)), NAN);
    LossOutput<float> output;
    output.grad = result.grad.data();
    output.grad_proxies = result.grad_proxies.data();
    loss_->run(context_, data.input(), output);
    result.loss = output.loss;
    result.valid_queries = output.valid_queries;
    return result;
  }

  template <class S> LossResult<S> on_cpu(const LossData<S>& data) const {
    LossFunction<S> function(context_, spec_, data.shape(), false);
    return function(data);
  }

  // What float makes of the loss at all is seen on the CPU; the GPU's code has the same formulas in
  // another order of summation, and gets three times that and a rounding.
  void expect_agreement(const LossData<double>& data, const std::string& what) {
    const LossResult<double> exact = on_cpu(data);
    const LossData<float> rounded = made_up::as_float(data);
    const LossResult<float> cpu = on_cpu(rounded);
    const LossResult<float> got = on_device(rounded);
    EXPECT_EQ(got.valid_queries, exact.valid_queries) << what;
    const double allowed = 3 * std::abs(cpu.loss - exact.loss) + 1e-5 * std::abs(exact.loss) + 1e-6;
    EXPECT_NEAR(got.loss, exact.loss, allowed) << what;
    EXPECT_LE(distance(got.grad, exact.grad),
              3 * distance(cpu.grad, exact.grad) + 3e-5 * norm(exact.grad) + 1e-7)
        << what << ", gradient of length " << norm(exact.grad);
    EXPECT_LE(
        distance(got.grad_proxies, exact.grad_proxies),
        3 * distance(cpu.grad_proxies, exact.grad_proxies) + 3e-5 * norm(exact.grad_proxies) + 1e-7)
        << what << ", gradient of the proxies of length " << norm(exact.grad_proxies);
  }

  LossData<double> batch(std::int64_t rows, std::int64_t memory, std::int64_t classes,
                         std::uint64_t seed) const {
    made_up::Wanted wanted{.rows = rows, .memory = memory, .dim = kDim, .classes = classes};
    if (!takes_memory(kind_)) wanted.memory = 0;
    wanted.identities = takes_memory(kind_) && seed % 2 == 1;
    return made_up::data(kind_, wanted, seed);
  }
};

TEST_P(DeviceLosses, AgreeWithTheCpuInDoubleBatchAfterBatch) {
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

TEST_P(DeviceLosses, WithoutPositivesThereIsNoLoss) {
  LossData<double> data = batch(31, 0, 5, 1);
  if (kind_ == LossKind::kProxies) GTEST_SKIP() << "every item counts";
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    data.labels[i] = static_cast<std::int64_t>(i);
  }
  data.identities.clear();
  std::ranges::fill(data.targets, std::uint8_t{0});
  const LossResult<float> got = on_device(made_up::as_float(data));
  EXPECT_EQ(got.valid_queries, 0);
  EXPECT_EQ(got.loss, 0);
  for (const float g : got.grad) ASSERT_EQ(g, 0);
}

TEST_P(DeviceLosses, GiveTheSameBitsTwice) {
  const LossData<float> data = made_up::as_float(batch(90, 40, 20, 3));
  const LossResult<float> first = on_device(data);
  on_device(made_up::as_float(batch(203, 131, 3, 4)));
  const LossResult<float> second = on_device(data);
  EXPECT_EQ(first.loss, second.loss);
  EXPECT_EQ(first.grad, second.grad);
  EXPECT_EQ(first.grad_proxies, second.grad_proxies);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceLosses, testing::ValuesIn(all_specs()), test_name);

}  // namespace
}  // namespace rk
