// Every registered loss through the GPU's code, on the emulated GPU, against the CPU in double.
#include "tests/losses/device_loss_case.h"

namespace rk {
namespace {

class OnHostGpu : public testing::TestWithParam<std::string> {
 protected:
  DeviceLossCase loss_{GetParam(), kHostFunctions};
};

TEST_P(OnHostGpu, AgreesWithTheCpuInDoubleBatchAfterBatch) { loss_.agrees_batch_after_batch(); }
TEST_P(OnHostGpu, RanksTiesAsTheCpuDoes) { loss_.ranks_ties_alike(); }
TEST_P(OnHostGpu, GivesTheSameBitsTwice) { loss_.gives_the_same_bits_twice(); }

class EmbeddingsOnHostGpu : public OnHostGpu {};
TEST_P(EmbeddingsOnHostGpu, OfZerosAreTaken) { loss_.takes_embeddings_of_zeros(); }
TEST_P(EmbeddingsOnHostGpu, ErrorsComeNearTheirBounds) { loss_.comes_near_its_bounds(); }

class QueriesOnHostGpu : public OnHostGpu {};
TEST_P(QueriesOnHostGpu, WithoutPositivesHaveNoLoss) { loss_.has_no_loss_without_positives(); }

// Runs the loss directly: LossFunction, which runs it in the other tests, refuses such embeddings.
double loss_of(const LossSpec& spec, const LossData<float>& data) {
  const Context gpu(1, Device{.cuda = true});
  const auto loss = make_loss<float>(spec);
  loss->allocate(gpu, data.shape());
  const Memory embeddings = gpu.copy_of(data.embeddings);
  const Memory memory = gpu.copy_of(data.memory_embeddings);
  const Memory proxies = gpu.copy_of(data.proxies);
  const Memory grad = gpu.copy_of(data.embeddings);
  const Memory grad_proxies = gpu.copy_of(data.proxies);
  LossInput<float> input = data.input();
  input.embeddings = embeddings.as<float>();
  input.memory_embeddings = memory.as<float>();
  input.proxies = proxies.as<float>();
  LossOutput<float> output;
  output.grad = grad.as<float>();
  output.grad_proxies = grad_proxies.as<float>();
  loss->run(gpu, input, output);
  return output.loss;
}

TEST(DeviceLosses, AreNotFiniteWhereAnEmbeddingIsNot) {
  for (const std::string& text : all_specs()) {
    SCOPED_TRACE(text);
    const LossSpec spec = parse_loss(text);
    if (spec.entry->kind == LossKind::kScores) continue;
    made_up::Wanted wanted = made_up::sizes(spec.entry->kind, 3);
    wanted.rows = 40;
    const LossData<float> data = made_up::as_float(made_up::data(spec.entry->kind, wanted, 3));
    EXPECT_TRUE(std::isfinite(loss_of(spec, data)));
    for (const float bad : {std::nanf(""), HUGE_VALF}) {
      for (const std::size_t at : {std::size_t{0}, data.embeddings.size() - 1}) {
        LossData<float> spoilt = data;
        spoilt.embeddings[at] = bad;
        EXPECT_FALSE(std::isfinite(loss_of(spec, spoilt))) << bad << " at " << at;
      }
    }
  }
}

// CUDA refuses a grid of no blocks, so an empty batch must not launch one.
TEST(DeviceLosses, AreZeroOfNoRows) {
  constexpr std::int64_t kDim = 8, kClasses = 3;
  for (const std::string& text : all_specs()) {
    SCOPED_TRACE(text);
    const LossSpec spec = parse_loss(text);
    if (spec.entry->kind == LossKind::kScores) continue;
    LossData<float> data;
    data.dim = kDim;
    data.rows = 0;
    if (spec.entry->kind == LossKind::kProxies) {
      data.classes = kClasses;
      data.proxies.assign(kClasses * kDim, 0.5F);
    }
    EXPECT_EQ(loss_of(spec, data), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OnHostGpu, testing::ValuesIn(all_specs()), test_name);
INSTANTIATE_TEST_SUITE_P(All, EmbeddingsOnHostGpu,
                         testing::ValuesIn(specs_but_of(LossKind::kScores)), test_name);
INSTANTIATE_TEST_SUITE_P(All, QueriesOnHostGpu, testing::ValuesIn(specs_but_of(LossKind::kProxies)),
                         test_name);

}  // namespace
}  // namespace rk
