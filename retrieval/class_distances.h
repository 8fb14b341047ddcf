// How tight classes are and how far apart (Roth et al. 2020), over all rows of one or two sets.
//
// d(x, y) = 1 - x.y / (|x| |y|); a row of zeros has distance 1 to everything. intra: mean over
// classes with at least two rows of the mean of d over their ordered pairs. inter: mean of d over
// ordered pairs of different class centres (mean of the rows as given; a centre shorter than 1e-12
// is left out). NaN if there is no pair. Both follow from sums of vectors: sum_{i != j} u_i.u_j
// = |sum u|^2 - sum |u|^2, in double, so this takes one pass over the rows. The context's threads
// share the classes; the number of threads changes no bit.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

namespace rk {

struct ClassDistances {
  double intra, inter;
};

ClassDistances class_distances(const Context& context, const EmbeddingView& set,
                               const EmbeddingView* more);

}  // namespace rk
