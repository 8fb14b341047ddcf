// Helpers shared by the samplers, and one maker per sampler for the registry in sampler.cpp.
#pragma once

#include "data/samplers/sampler.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace rk {

// Returns 0..n-1 with the first `take` entries in random order (Fisher-Yates from the front); the
// rest is in no particular order.
std::vector<std::int64_t> random_order(std::int64_t n, std::int64_t take, CounterRandom random);

// The random order of 0..n-1 in each pass of an epoch. That of the last pass asked for is kept:
// drawn anew for each batch, a pass would take time quadratic in n. Thread-safe.
class PassOrder {
 public:
  PassOrder(std::int64_t n, std::uint64_t seed, RandomUse use) : n_(n), seed_(seed), use_(use) {}
  // `count` entries from place `first` on.
  std::vector<std::int64_t> part(std::int64_t epoch, std::int64_t pass, std::int64_t first,
                                 std::int64_t count) const;

 private:
  std::int64_t n_;
  std::uint64_t seed_;
  RandomUse use_;
  mutable std::mutex mutex_;
  mutable std::pair<std::int64_t, std::int64_t> kept_ = {-1, -1};  // epoch and pass
  mutable std::vector<std::int64_t> order_;
};

// Throws InputError naming the first class with fewer than two images.
void require_pairs(const Dataset& data);

// Throws InputError if there are fewer images than a batch holds.
void require_images(const Dataset& data, std::int64_t batch_size);

// Throws UsageError if an epoch has more than `most` batches, beyond which the keys of its draws
// (engine/base/random_stream.h) would no longer be distinct.
void require_countable(std::string_view sampler, std::int64_t batches, std::int64_t most);

// The arguments that make_sampler() passes on. batches 0: the sampler's own number.
struct SamplerRequest {
  const Dataset& data;
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::int64_t batches = 0;
  std::int64_t parts = 1;  // that share a batch equally; only for advice
};

using SamplerMaker = std::unique_ptr<Sampler>(const DataSpec& spec, const SamplerRequest& request);
SamplerMaker make_pk, make_category, make_random_classes, make_random;

}  // namespace rk
