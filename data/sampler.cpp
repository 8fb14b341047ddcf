#include "data/sampler.h"

#include "data/random_stream.h"
#include "engine/error.h"
#include "engine/nearest.h"
#include "engine/random.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace rk {
namespace {

// The first `take` of a random order of 0..n-1 (Fisher-Yates from the front).
std::vector<std::int64_t> random_order(std::int64_t n, std::int64_t take, CounterRandom random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < take; ++i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(i + random.below(n - i))]);
  }
  return order;
}

class PkSampler : public Sampler {
 public:
  PkSampler(const Dataset& data, std::int64_t batch_size, std::int64_t k, std::uint64_t seed,
            std::int64_t batches)
      : data_(data), k_(k), classes_per_batch_(batch_size / k), seed_(seed) {
    check(batch_size);
    batches_ = batches > 0 ? batches : std::max<std::int64_t>(1, data.size() / batch_size);
    const auto classes = static_cast<std::int64_t>(data.classes().size());
    batches_per_pass_ = classes / classes_per_batch_;
    // Limits of the numbers that key the draws.
    expect(batches_ / batches_per_pass_ < (1 << 24) && classes < (std::int64_t{1} << 36),
           "[sampler] expected fewer than 2^24 passes an epoch");
  }

  std::int64_t batch_size() const override { return classes_per_batch_ * k_; }
  std::int64_t batches_per_epoch() const override { return batches_; }

  std::int64_t batch(std::int64_t epoch, std::int64_t batch, std::span<Draw> draws) const override {
    const std::int64_t pass = batch / batches_per_pass_;
    const std::int64_t first = batch % batches_per_pass_ * classes_per_batch_;
    const std::vector<std::int64_t> classes =
        random_order(static_cast<std::int64_t>(data_.classes().size()), first + classes_per_batch_,
                     CounterRandom(seed_, random_stream(RandomUse::kClassOrder, epoch),
                                   static_cast<std::uint64_t>(pass)));
    for (std::int64_t i = 0; i < classes_per_batch_; ++i) {
      draw_class(epoch, pass, classes[static_cast<std::size_t>(first + i)],
                 draws.subspan(static_cast<std::size_t>(i * k_), static_cast<std::size_t>(k_)));
    }
    return batch_size();
  }

 private:
  void check(std::int64_t batch_size) const {
    if (k_ < 2) {
      fail<UsageError>("pk: k={} images a class give no pairs; use 2 or more", k_);
    }
    if (batch_size < k_ || batch_size % k_ != 0) {
      fail<UsageError>(
          "pk: a batch of {} is no multiple of k={} images a class; use {} or another k",
          batch_size, k_, std::max(k_, (batch_size + k_ / 2) / k_ * k_));
    }
    std::size_t largest = 0;
    for (std::size_t c = 0; c < data_.members().size(); ++c) {
      const std::size_t images = data_.members()[c].size();
      if (images < 2) {
        fail<InputError>(
            "{}: class '{}' has {} image{}, training needs two; add some, or leave such classes "
            "out "
            "with min_images=2",
            data_.name(), data_.classes()[c].name, images, images == 1 ? "" : "s");
      }
      largest = std::max(largest, images);
    }
    if (static_cast<std::int64_t>(largest) < k_) {
      fail<InputError>(
          "{}: {} images a class wanted, the largest class has {}; lower k to {} or less",
          data_.name(), k_, largest, largest);
    }
    const auto classes = static_cast<std::int64_t>(data_.classes().size());
    if (classes < classes_per_batch_) {
      fail<InputError>(
          "{}: a batch of {} with {} images a class needs {} classes, there are {}; lower the "
          "batch to "
          "{} or raise k",
          data_.name(), batch_size, k_, classes_per_batch_, classes, classes * k_);
    }
  }

  void draw_class(std::int64_t epoch, std::int64_t pass, std::int64_t label,
                  std::span<Draw> draws) const {
    const std::vector<std::int64_t>& members = data_.members()[static_cast<std::size_t>(label)];
    const auto n = static_cast<std::int64_t>(members.size());
    // One order of the class's images lasts for `lasts` passes; what does not fill k waits for
    // another.
    const std::int64_t lasts = std::max<std::int64_t>(1, n / k_);
    const std::int64_t first = pass % lasts * k_;
    const std::vector<std::int64_t> order =
        random_order(n, std::min(n, first + k_),
                     CounterRandom(seed_, random_stream(RandomUse::kImageOrder, epoch),
                                   static_cast<std::uint64_t>((pass / lasts << 36) + label)));
    for (std::int64_t j = 0; j < k_; ++j) {
      const std::int64_t member = order[static_cast<std::size_t>((first + j) % n)];
      draws[static_cast<std::size_t>(j)] = {members[static_cast<std::size_t>(member)],
                                            pass * k_ + j};
    }
  }

  const Dataset& data_;
  std::int64_t k_;
  std::int64_t classes_per_batch_;
  std::uint64_t seed_;
  std::int64_t batches_ = 0;
  std::int64_t batches_per_pass_ = 1;
};

class SequentialSampler : public Sampler {
 public:
  SequentialSampler(const Dataset& data, std::int64_t batch_size)
      : size_(data.size()), batch_size_(batch_size) {
    if (batch_size < 1) fail<UsageError>("a batch of {} images; use 1 or more", batch_size);
  }
  std::int64_t batch_size() const override { return batch_size_; }
  std::int64_t batches_per_epoch() const override {
    return (size_ + batch_size_ - 1) / batch_size_;
  }
  std::int64_t batch(std::int64_t, std::int64_t batch, std::span<Draw> draws) const override {
    const std::int64_t first = batch * batch_size_;
    const std::int64_t count = std::min(batch_size_, size_ - first);
    for (std::int64_t i = 0; i < count; ++i) draws[static_cast<std::size_t>(i)] = {first + i, 0};
    return count;
  }

 private:
  std::int64_t size_;
  std::int64_t batch_size_;
};

struct SamplerEntry {
  std::string_view name;
  std::vector<std::string> keys;
  std::unique_ptr<Sampler> (*make)(const DataSpec& parameters, const Dataset& data,
                                   std::int64_t batch_size, std::uint64_t seed,
                                   std::int64_t batches);
};

std::unique_ptr<Sampler> make_pk(const DataSpec& parameters, const Dataset& data,
                                 std::int64_t batch_size, std::uint64_t seed,
                                 std::int64_t batches) {
  const std::int64_t k = parameters.integer("k", 4, 1, 1 << 20);
  return std::make_unique<PkSampler>(data, batch_size, k, seed, batches);
}

const std::vector<SamplerEntry>& samplers() {
  static const std::vector<SamplerEntry> table{{"pk", {"k"}, make_pk}};
  return table;
}

}  // namespace

std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const SamplerEntry& entry : samplers()) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Sampler> make_sampler(std::string_view text, const Dataset& data,
                                      std::int64_t batch_size, std::uint64_t seed,
                                      std::int64_t batches) {
  const std::size_t colon = text.find(':');
  const std::string name(text.substr(0, colon));
  for (const SamplerEntry& entry : samplers()) {
    if (entry.name != name) continue;
    DataSpec parameters{name, "", {}};
    if (colon != std::string_view::npos) {
      parameters.options = parse_key_values(text.substr(colon + 1), name);
    }
    for (const auto& [key, value] : parameters.options) {
      if (std::find(entry.keys.begin(), entry.keys.end(), key) == entry.keys.end()) {
        fail<UsageError>("{}: no parameter '{}'; {}", name, key, suggestion(key, entry.keys));
      }
    }
    if (batches < 0) fail<UsageError>("{} batches an epoch; use 1 or more", batches);
    return entry.make(parameters, data, batch_size, seed, batches);
  }
  fail<UsageError>("'{}' is no sampler; {}", name, suggestion(name, sampler_names()));
}

std::unique_ptr<Sampler> make_sequential(const Dataset& data, std::int64_t batch_size) {
  return std::make_unique<SequentialSampler>(data, batch_size);
}

}  // namespace rk
