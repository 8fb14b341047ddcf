// Which images make a batch. Stateless: batch b of epoch e is a function of (seed, e, b), so
// training can go on from any batch and threads may ask in any order.
//
//   pk:k=4   P = N/k distinct classes, k images each. An epoch is a row of passes; a pass orders
//            the C classes anew and cuts them into floor(C/P) batches, so no class comes twice in a
//            pass, and the C mod P left over differ from pass to pass. Inside a class the k images
//            are distinct, and all its images are used before one comes again (up to n mod k left
//            over a round); a class with fewer than k images repeats them, each as often as the
//            next but for one. Batches an epoch: floor(images/N), at least 1, unless asked for.
// Errors (InputError, naming the class where there is one): a class with one image, k larger than
// the largest class, fewer than P classes. UsageError: N no multiple of k, k < 2, unknown name or
// parameter.
#pragma once

#include "data/dataset.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

struct Draw {
  std::int64_t index = 0;  // in the data set
  std::int64_t copy = 0;   // tells its appearances in one epoch apart
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual std::int64_t batch_size() const = 0;  // the most that a batch holds
  virtual std::int64_t batches_per_epoch() const = 0;
  // Fills the front of `draws` (batch_size() long) and returns how many. Thread-safe.
  virtual std::int64_t batch(std::int64_t epoch, std::int64_t batch,
                             std::span<Draw> draws) const = 0;
};

// `text`: "pk", "pk:k=4". batches 0: the sampler's own number. The data set must outlive the
// sampler.
std::unique_ptr<Sampler> make_sampler(std::string_view text, const Dataset& data,
                                      std::int64_t batch_size, std::uint64_t seed,
                                      std::int64_t batches = 0);
std::vector<std::string> sampler_names();

// All items in order, the last batch short: evaluation.
std::unique_ptr<Sampler> make_sequential(const Dataset& data, std::int64_t batch_size);

}  // namespace rk
