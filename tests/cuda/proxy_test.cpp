// Proxies that a loss cannot take are the CPU's error on a GPU too, in its words.
#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "losses/cuda/loss.h"
#include "tests/cuda/gpu.h"
#include "tests/support/made_up.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr std::int64_t kDim = 16;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What `run` throws as an InputError; empty: nothing.
template <class F> std::string refusal(F&& run) {
  try {
    run();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

class Both {
 public:
  explicit Both(const std::string& name) : spec_(parse_loss(name)) {
    data_ = made_up::as_float(
        made_up::data(LossKind::kProxies, {.rows = 20, .dim = kDim, .classes = 300}, 1));
    host_ = make_loss<float>(spec_);
    host_->plan(context_, data_.shape());
    device_ = make_device_loss(cuda_, spec_);
    device_->plan(data_.shape());
  }

  float* proxy(std::int64_t row) { return data_.proxies.data() + row * kDim; }
  const LossData<float>& data() const { return data_; }
  void reset(const LossData<float>& data) { data_ = data; }

  std::string on_host() {
    std::vector<float> grad(data_.embeddings.size()), grad_proxies(data_.proxies.size());
    LossOutput<float> output;
    output.grad = grad.data();
    output.grad_proxies = grad_proxies.data();
    return refusal([&] {
      host_->run(context_, data_.input(), output);
      host_loss_ = output.loss;
    });
  }
  std::string on_device() {
    const auto embeddings = DeviceBuffer::copy_of(data_.embeddings);
    const auto proxies = DeviceBuffer::copy_of(data_.proxies);
    const auto grad = DeviceBuffer::of<float>(data_.rows * kDim);
    const auto grad_proxies = DeviceBuffer::of<float>(data_.classes * kDim);
    device_->prepare(data_.input());
    device_->launch(
        {.dim = kDim, .embeddings = embeddings.as<float>(), .proxies = proxies.as<float>()},
        {.grad = grad.as<float>(), .grad_proxies = grad_proxies.as<float>()});
    return refusal([&] { device_loss_ = device_->result().loss; });
  }
  // The same words, these among them.
  void refuse(const std::string& words) {
    const std::string said = on_host();
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_EQ(on_device(), said);
  }
  void take() {
    EXPECT_EQ(on_host(), "");
    EXPECT_EQ(on_device(), "");
    EXPECT_TRUE(std::isfinite(host_loss_));
    // Rounding in another order; tests of all losses look closer.
    EXPECT_NEAR(device_loss_, host_loss_, 1e-4 * std::abs(host_loss_));
  }

 private:
  LossSpec spec_;
  Context context_{1};
  CudaContext cuda_{0};
  LossData<float> data_;
  std::unique_ptr<Loss<float>> host_;
  std::unique_ptr<DeviceLoss> device_;
  double host_loss_ = kNan, device_loss_ = kNan;
};

class ProxyTest : public OnGpu {};

TEST_F(ProxyTest, OneThatHasNoDirectionIsRefused) {
  for (const char* name : {"nsl", "proxy_anchor"}) {
    SCOPED_TRACE(name);
    Both both(name);
    const LossData<float> good = both.data();
    both.take();
    std::fill_n(both.proxy(277), kDim, 0.0F);
    both.refuse("proxies: row 277 is zero and has no direction");
    std::fill_n(both.proxy(31), kDim, -0.0F);
    both.refuse("proxies: row 31 is zero");
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
      both.proxy(298)[kDim - 1] = value;
      both.refuse("proxies: row 298 holds NaN, infinity or a number beyond 1e+10");
      // Worse than zeros, wherever those are.
      std::fill_n(both.proxy(0), kDim, 0.0F);
      both.refuse("proxies: row 298 holds NaN");
    }
  }
}

TEST_F(ProxyTest, AnyOtherLengthIsTaken) {
  for (const char* name : {"nsl", "proxy_anchor"}) {
    SCOPED_TRACE(name);
    Both both(name);
    // In float the squares would underflow.
    for (std::int64_t d = 0; d < kDim; ++d) both.proxy(5)[d] *= 1e-25F;
    both.take();
    // Longer than the largest number that is taken.
    std::fill_n(both.proxy(6), kDim, 9e9F);
    both.take();
  }
}

TEST_F(ProxyTest, TrainingEndsAsOnTheCpuAndChangesNothing) {
  constexpr std::int64_t kRows = 8;
  constexpr int kSide = 32;
  TrainerOptions options;
  options.model.arch = "resnet18";
  options.model.dim = 8;
  options.model.crop = options.model.resize = kSide;
  options.batchnorm = BatchNormMode::kRunning;
  options.loss = parse_loss("nsl");
  options.batch = kRows;
  options.classes = 4;
  std::vector<std::string> said;
  for (const bool cuda : {false, true}) {
    const Context context(2, Device{.cuda = cuda});
    Trainer trainer(context, options);
    trainer.step(NoiseBatch(kRows, kSide, 0).get());
    trainer.pull();
    const auto& entries = trainer.parameters().entries();
    const auto found = std::ranges::find(entries, "proxies", &Parameters::Entry::name);
    ASSERT_NE(found, entries.end());
    const auto proxies = static_cast<ParameterId>(found - entries.begin());
    std::fill_n(trainer.parameters().value(proxies) + 8, 8, 0.0F);
    trainer.push();
    const std::vector<float> before(trainer.parameters().values().begin(),
                                    trainer.parameters().values().end());
    try {
      trainer.step(NoiseBatch(kRows, kSide, 1).get());
      ADD_FAILURE() << "no divergence";
    } catch (const DivergedError& error) {
      said.emplace_back(error.what());
    }
    trainer.pull();
    EXPECT_TRUE(std::ranges::equal(before, trainer.parameters().values()));
  }
  ASSERT_EQ(said.size(), 2U);
  EXPECT_NE(said[0].find("proxies: row 1 is zero"), std::string::npos) << said[0];
  EXPECT_EQ(said[1], said[0]);
}

}  // namespace
}  // namespace rk
