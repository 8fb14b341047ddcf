// The kernels of long rankings.
#include "kernels/launch.cuh"
#include "kernels/ranking_block.h"

namespace rk {

#define RK_RANKING(Key)              \
  RK_LAUNCH(KeyScores<Key>);         \
  RK_LAUNCH(CountFlags<Key>);        \
  RK_LAUNCH(WriteRanks<Key>);        \
  RK_LAUNCH(MovePositives<Key>);     \
  RK_LAUNCH(NegativeGradients<Key>); \
  RK_LAUNCH(PositiveGradients<Key>)

RK_RANKING(std::uint32_t);
RK_RANKING(std::uint64_t);
RK_LAUNCH(SumFlags);
RK_LAUNCH(SumPrecision);

}  // namespace rk
