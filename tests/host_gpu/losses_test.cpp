// Every registered loss through the code of the GPU, on the one made of the host, against the CPU
// in double.
#include "tests/losses/device_loss_case.h"

namespace rk {
namespace {

class OnHostGpu : public testing::TestWithParam<std::string> {
 protected:
  DeviceLossCase loss_{GetParam(), kHostFunctions};
};

TEST_P(OnHostGpu, AgreesWithTheCpuInDoubleBatchAfterBatch) { loss_.agrees_batch_after_batch(); }
TEST_P(OnHostGpu, RanksTiesAsTheCpuDoes) { loss_.ranks_ties_alike(); }
TEST_P(OnHostGpu, TakesEmbeddingsOfZeros) { loss_.takes_embeddings_of_zeros(); }
TEST_P(OnHostGpu, HasNoLossWithoutPositives) { loss_.has_no_loss_without_positives(); }
TEST_P(OnHostGpu, GivesTheSameBitsTwice) { loss_.gives_the_same_bits_twice(); }

TEST(DeviceLosses, EveryRegisteredLossIsCoveredHere) {
  for (const LossEntry& entry : loss_registry()) {
    const bool covered = std::ranges::any_of(
        all_specs(), [&](const std::string& spec) { return parse_loss(spec).entry == &entry; });
    EXPECT_TRUE(covered) << entry.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OnHostGpu, testing::ValuesIn(all_specs()), test_name);

}  // namespace
}  // namespace rk
