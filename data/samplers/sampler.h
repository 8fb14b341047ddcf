// Which images make a batch. Stateless: batch b of epoch e is a function of (seed, e, b), so
// training can go on from any batch and threads may ask in any order.
//
//   pk:k=4   P = N/k distinct classes, k images each. An epoch is a row of passes; a pass orders
//            the C classes anew and cuts them into floor(C/P) batches, so no class comes twice in a
//            pass, and the C mod P left over differ from pass to pass. Inside a class the k images
//            are distinct, and all its images are used before one comes again (up to n mod k left
//            over a round); a class with fewer than k images repeats them, each as often as the
//            next but for one. Batches an epoch: floor(images/N), at least 1, unless asked for.
//   category:per_pair=10,k=0
//            Two categories, N/2 images of each; per_pair batches in a row for a pair, all
//            unordered pairs in an epoch in random order. Of a category: classes in random order,
//            each whole (k > 0: k images), until N/2; the last is cut. Where they are too few,
//            further rounds of the same order go on with the images of a class that have not come
//            yet, and then repeat them. FastAP's "hard" strategy (Cakir et al. 2019, supplement A:
//            per_pair 5 for SOP, 2 for In-Shop); RaMBO's (Rolinek et al. 2020, supplement) has
//            per_pair 10 and k 4 for SOP, 4 and 8 for In-Shop. Decided here: pairs in random order.
//   random_classes
//            Classes of the whole set in random order, each whole, until N images; the last is cut.
//            FastAP's "random" strategy. Batches an epoch as for pk.
//   random   All images in random order, N at a time; what is left over differs by epoch. For
//            losses with proxies (Oi et al. 2021): a batch may be without a positive pair.
// Errors (InputError, naming the class where there is one): a class with one image (but for
// random), k of pk larger than the largest class, too few classes, categories or images.
// UsageError: N no multiple of k, k < 2, more batches than draws are keyed for, unknown name or
// parameter.
#pragma once

#include "data/sources/dataset.h"
#include "data/spec.h"

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

// The grammar alone, without a data set: UsageError for unknown names and parameters.
DataSpec parse_sampler(std::string_view text);

// `text`: "pk", "pk:k=4". batches 0: the sampler's own number. The data set must outlive the
// sampler.
std::unique_ptr<Sampler> make_sampler(std::string_view text, const Dataset& data,
                                      std::int64_t batch_size, std::uint64_t seed,
                                      std::int64_t batches = 0);
std::vector<std::string> sampler_names();
std::string sampler_help();  // a line a sampler, each behind a line break

// Of every batch the images [part, part + 1) * N / parts, for several processes that share one:
// together they draw what `whole` does alone. `whole` must outlive it.
std::unique_ptr<Sampler> make_batch_share(const Sampler& whole, std::int64_t part,
                                          std::int64_t parts);

// All items in order, the last batch short: evaluation.
std::unique_ptr<Sampler> make_sequential(const Dataset& data, std::int64_t batch_size);

}  // namespace rk
