// Every registered loss on a GPU against the CPU in double.
#include "tests/cuda/gpu.h"
#include "tests/losses/device_loss_case.h"

namespace rk {
namespace {

class CudaLosses : public OnGpu {
 protected:
  template <class F> void for_each_loss(const std::vector<std::string>& specs, F&& check) {
    for (const std::string& spec : specs) {
      SCOPED_TRACE(spec);
      DeviceLossCase loss(spec, kCardFunctions);
      check(loss);
    }
  }
};

TEST_F(CudaLosses, AgreeWithTheCpuInDoubleBatchAfterBatch) {
  for_each_loss(all_specs(), [](DeviceLossCase& loss) { loss.agrees_batch_after_batch(); });
}
TEST_F(CudaLosses, RankTiesAsTheCpuDoes) {
  for_each_loss(all_specs(), [](DeviceLossCase& loss) { loss.ranks_ties_alike(); });
}
TEST_F(CudaLosses, TakeEmbeddingsOfZeros) {
  for_each_loss(specs_but_of(LossKind::kScores),
                [](DeviceLossCase& loss) { loss.takes_embeddings_of_zeros(); });
}
TEST_F(CudaLosses, HaveNoLossWithoutPositives) {
  for_each_loss(specs_but_of(LossKind::kProxies),
                [](DeviceLossCase& loss) { loss.has_no_loss_without_positives(); });
}
TEST_F(CudaLosses, GiveTheSameBitsTwice) {
  for_each_loss(all_specs(), [](DeviceLossCase& loss) { loss.gives_the_same_bits_twice(); });
}

}  // namespace
}  // namespace rk
