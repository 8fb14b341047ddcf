// Proxies that a loss cannot take must give the CPU's error on a GPU too, word for word.
#include "engine/base/error.h"
#include "tests/cuda/gpu.h"
#include "tests/support/made_up.h"
#include "tests/support/messages.h"
#include "tests/support/parameter_id.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr std::int64_t kProxyDim = 16;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Both {
 public:
  explicit Both(const std::string& name) {
    data_ = made_up::as_float(
        made_up::data(LossKind::kProxies, {.rows = 20, .dim = kProxyDim, .classes = 300}, 1));
    for (const Context* context : {&cpu_, &gpu_}) {
      losses_.push_back(make_loss<float>(name));
      losses_.back()->allocate(*context, data_.shape());
    }
  }

  float* proxy(std::int64_t row) { return data_.proxies.data() + row * kProxyDim; }
  const LossData<float>& data() const { return data_; }
  void reset(const LossData<float>& data) { data_ = data; }

  // Both devices must refuse in the same words, `words` among them.
  void refuse(const std::string& words) {
    const std::string said = run(cpu_, *losses_[0]);
    EXPECT_TRUE(holds(said, words));
    EXPECT_EQ(run(gpu_, *losses_[1]), said);
  }
  void take() {
    EXPECT_EQ(run(cpu_, *losses_[0]), "");
    const double expected = loss_;
    EXPECT_EQ(run(gpu_, *losses_[1]), "");
    EXPECT_TRUE(std::isfinite(expected));
    // Rounding in another order; tests of all losses look closer.
    EXPECT_NEAR(loss_, expected, 1e-4 * std::abs(expected));
  }

 private:
  // Not through LossFunction, which checks the proxies itself.
  std::string run(const Context& context, Loss<float>& loss) {
    const Memory embeddings = context.copy_of(data_.embeddings),
                 proxies = context.copy_of(data_.proxies);
    const Memory grad = context.copy_of(data_.embeddings),
                 grad_proxies = context.copy_of(data_.proxies);
    LossInput<float> input = data_.input();
    input.embeddings = embeddings.as<float>();
    input.proxies = proxies.as<float>();
    LossOutput<float> output;
    output.grad = grad.as<float>();
    output.grad_proxies = grad_proxies.as<float>();
    return message_if_any<InputError>([&] {
      loss.run(context, input, output);
      loss_ = output.loss;
    });
  }

  Context cpu_{1};
  Context gpu_{1, Device{.cuda = true}};
  LossData<float> data_;
  std::vector<std::unique_ptr<Loss<float>>> losses_;  // one per device
  double loss_ = kNan;
};

class ProxyTest : public OnGpu {};

TEST_F(ProxyTest, OneThatHasNoDirectionIsRefused) {
  for (const char* name : {"nsl", "proxy_anchor"}) {
    SCOPED_TRACE(name);
    Both both(name);
    const LossData<float> good = both.data();
    both.take();
    std::fill_n(both.proxy(277), kProxyDim, 0.0F);
    both.refuse("proxies: row 277 is zero, or so short that it has no direction");
    std::fill_n(both.proxy(31), kProxyDim, -0.0F);
    both.refuse("proxies: row 31 is zero");
    std::fill_n(both.proxy(7), kProxyDim, 1e-39F);  // its gradient would be beyond float
    both.refuse("proxies: row 7 is zero, or so short");
    both.reset(good);
    both.take();
  }
}

TEST_F(ProxyTest, OneThatIsNotFiniteIsRefused) {
  for (const char* name : {"nsl", "proxy_anchor"}) {
    SCOPED_TRACE(name);
    Both both(name);
    const LossData<float> good = both.data();
    for (const float value : {kNan, std::numeric_limits<float>::infinity(), -2e10F}) {
      both.reset(good);
      both.proxy(298)[kProxyDim - 1] = value;
      both.refuse("proxies: row 298 holds NaN, infinity or a number beyond 1e+10");
      // Reported before zeros, wherever those are.
      std::fill_n(both.proxy(0), kProxyDim, 0.0F);
      both.refuse("proxies: row 298 holds NaN");
    }
  }
}

TEST_F(ProxyTest, AnyOtherLengthIsTaken) {
  for (const char* name : {"nsl", "proxy_anchor"}) {
    SCOPED_TRACE(name);
    Both both(name);
    // In float the squares would underflow.
    for (std::int64_t d = 0; d < kProxyDim; ++d) both.proxy(5)[d] *= 1e-25F;
    both.take();
    // The proxy is longer than the largest number that is accepted, its numbers are not.
    std::fill_n(both.proxy(6), kProxyDim, 9e9F);
    both.take();
  }
}

TEST_F(ProxyTest, TrainingEndsAsOnTheCpuAndChangesNothing) {
  constexpr std::int64_t kRows = 8;
  constexpr int kSide = 16;
  TrainerOptions options = small_trainer("nsl", kRows);
  options.batchnorm = BatchNormMode::kRunning;
  std::vector<std::string> said;
  for (const bool cuda : {false, true}) {
    const Context context(2, Device{.cuda = cuda});
    Trainer trainer(context, options);
    trainer.step(NoiseBatch(kRows, kSide, 0).get());
    trainer.download();
    const ParameterId proxies = id_of(trainer.parameters(), "proxies");
    std::fill_n(trainer.parameters().value(proxies) + 8, 8, 0.0F);
    trainer.upload();
    const std::vector<float> before(trainer.parameters().values().begin(),
                                    trainer.parameters().values().end());
    try {
      trainer.step(NoiseBatch(kRows, kSide, 1).get());
      ADD_FAILURE() << "no divergence";
    } catch (const DivergedError& error) {
      said.emplace_back(error.what());
    }
    trainer.download();
    EXPECT_TRUE(std::ranges::equal(before, trainer.parameters().values()));
  }
  ASSERT_EQ(said.size(), 2U);
  EXPECT_TRUE(holds(said[0], "proxies: row 1 is zero"));
  EXPECT_EQ(said[1], said[0]);
}

}  // namespace
}  // namespace rk
