// The kernels of an evaluation.
#include "kernels/launch.cuh"
#include "kernels/score_block.h"

namespace rk {

RK_LAUNCH(GatherPositives);
RK_LAUNCH(CountRanks);
RK_LAUNCH(CountNegatives);
RK_LAUNCH(CountUnequal);

}  // namespace rk
