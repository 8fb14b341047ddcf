// Chooses the images of each batch. Stateless: batch b of epoch e is a function of (seed, e, b), so
// training can resume at any batch and threads may request batches in any order.
//
//   pk:k=4   P = N/k distinct classes, k images each (N: the batch size). An epoch is a sequence of
//            passes; each pass shuffles the C classes and cuts them into floor(C/P) batches, so no
//            class occurs twice in a pass, and the C mod P classes left over differ from pass to
//            pass. The k images of a class are distinct. A random order of its n images serves
//            floor(n/k) passes, k images each, before the next order; so none repeats before, and
//            left out are the last n mod k and the k of each pass that leaves the class out. A
//            class with fewer than k images repeats them, with counts that differ by at most one.
//            Batches per epoch unless given: floor(images/N), at least 1.
//   category:per_pair=10,k=0
//            Two categories, N/2 images of each; per_pair consecutive batches for each pair, and
//            all unordered pairs once per epoch in random order. From a category: classes in random
//            order, all images of each (k > 0: k images), until N/2; the last class is cut. If
//            these are too few, further rounds in the same order take the next images of each
//            class; a class that has fewer unused begins again. This is FastAP's "hard" strategy
//            (Cakir et al. 2019, supplement A: per_pair 5 for SOP, 2 for In-Shop); RaMBO's
//            (Rolinek et al. 2020, supplement) has per_pair 10 and k 4 for SOP, 4 and 8 for
//            In-Shop. The random order of the pairs is our choice.
//   random_classes
//            Classes of the whole set in random order, all images of each, until N images; the last
//            class is cut. FastAP's "random" strategy. Batches per epoch as for pk.
//   random   All images in random order, N at a time; the images left over differ by epoch. For
//            losses with proxies (Oi et al. 2021): a batch may have no positive pair.
// InputError (naming the class if there is one): a class with one image (except for random), pk's k
// above the largest class, a class that fills a whole batch (random_classes), a class without a
// category (category), too few classes, categories or images.
// UsageError: N not a multiple of k, k < 2, too small a batch, more batches than distinct keys for
// draws, unknown name or parameter.
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
  std::int64_t copy = 0;   // numbers the image's appearances in one epoch
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual std::int64_t batch_size() const = 0;  // the largest size of a batch
  virtual std::int64_t batches_per_epoch() const = 0;
  // Fills the front of `draws` (batch_size() long) and returns the number of draws. Thread-safe.
  virtual std::int64_t batch(std::int64_t epoch, std::int64_t batch,
                             std::span<Draw> draws) const = 0;
};

// Checks only the grammar, without a data set: throws UsageError for unknown names and parameters.
DataSpec parse_sampler(std::string_view text);

// `text`: "pk", "pk:k=4". batches 0: the sampler's own number. The data set must outlive the
// sampler. An error names a batch size that `parts` processes can share, if one is the remedy.
std::unique_ptr<Sampler> make_sampler(std::string_view text, const Dataset& data,
                                      std::int64_t batch_size, std::uint64_t seed,
                                      std::int64_t batches = 0, std::int64_t parts = 1);
std::vector<std::string> sampler_names();
std::string sampler_help();  // one line per sampler, each preceded by a line break

// Returns images [part, part + 1) * N / parts of every batch of `whole`, for processes that share a
// batch: together they draw the same images as `whole`. `whole` must outlive the result.
std::unique_ptr<Sampler> make_batch_share(const Sampler& whole, std::int64_t part,
                                          std::int64_t parts);

// All items in order, the last batch may be short; for evaluation.
std::unique_ptr<Sampler> make_sequential(const Dataset& data, std::int64_t batch_size);

}  // namespace rk
