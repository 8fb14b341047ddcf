// In place of kernels/score_kernels_cuda.cu.
#include "kernels/score_block.h"
#include "tests/host_gpu/launch.h"

namespace rk {

RK_LAUNCH(GatherPositives);
RK_LAUNCH(CountRanks);
RK_LAUNCH(CountNegatives);
RK_LAUNCH(CountUnequal);

}  // namespace rk
