// The rows of losses on pairs and triplets.
#include "kernels/contrastive_row.h"
#include "kernels/multi_similarity_row.h"
#include "kernels/rows_cuda.cuh"
#include "kernels/triplet_row.h"

namespace rk {

RK_GALLERY_ROWS(ContrastiveRow);
RK_GALLERY_ROWS(MultiSimilarityRow);
RK_GALLERY_ROWS(TripletHardRow);
RK_GALLERY_ROWS(TripletAllRow);

}  // namespace rk
