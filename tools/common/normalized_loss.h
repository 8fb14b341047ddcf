// A loss on the data of a file as one call on either device, optionally including the normalisation
// of the embeddings:
//   e = x / |x|,  dL/dx = (dL/de - (dL/de . e) e) / |x|
// For probe and for tests; training normalises in a layer of the network. The data is on the host;
// the loss works on a copy.
#pragma once

#include "tools/common/loss_file.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

template <class S> struct LossResult {
  double loss = 0;
  std::int64_t valid_queries = 0;
  std::vector<S> grad;          // of the embeddings or scores
  std::vector<S> grad_proxies;  // empty for losses without proxies
};

template <class S> class LossFunction {
 public:
  // shape: the largest shape of the data.
  LossFunction(const Context& context, const LossSpec& spec, const LossShape& shape,
               bool normalize);

  // Throws InputError if a number is not finite, on a GPU too, or if a row to be normalised is zero
  // or too short for its gradient.
  LossResult<S> operator()(const LossData<S>& data);
  LossKind kind() const { return spec_.entry->kind; }
  bool normalizes() const { return normalize_; }

 private:
  const Context& context_;
  LossSpec spec_;
  bool normalize_;
  std::unique_ptr<Loss<S>> loss_;
  Memory inputs_, gradients_;
};

// The error of the gradient against central differences (f(x + h v) - f(x - h v)) / 2h along random
// unit directions v of the whole input, in double. Rows that are normalised count in units of their
// length. check_differences() throws Interrupted if a signal asks to stop.
struct DifferenceCheck {
  int directions = 0;
  double step = 0;
  // |difference - grad . v| / |grad| * sqrt(number of elements), where |grad| / sqrt(number of
  // elements) is taken as at least a thousand times the rounding error of the differences.
  double worst = 0;
  double median = 0;
  // Rows of the embeddings that are equal to an earlier one: in between, distances and ranks have a
  // kink, where differences are no gradient.
  std::int64_t equal_rows = 0;
};
DifferenceCheck check_differences(LossFunction<double>& function, const LossData<double>& data,
                                  std::uint64_t seed, int directions, double step);

}  // namespace rk
