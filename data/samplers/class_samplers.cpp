// Samplers that take whole classes: the two strategies of FastAP (Cakir et al. 2019, supplement A).
#include "data/samplers/samplers.h"
#include "data/spec.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rk {
namespace {

// Fills places of a batch with images, class by class, the classes in random order.
class ClassFiller {
 public:
  // per_class 0: all images of a class.
  ClassFiller(const SamplerRequest& request, std::int64_t per_class)
      : data_(request.data),
        batch_size_(request.batch_size),
        per_class_(per_class),
        seed_(request.seed) {}

  // Fills places [first, first + count) of the batch; `part` numbers the parts of one batch.
  void fill(const std::vector<std::int64_t>& classes, std::int64_t epoch, std::int64_t batch,
            std::int64_t part, std::int64_t first, std::int64_t count,
            std::span<Draw> draws) const {
    const auto total = static_cast<std::int64_t>(classes.size());
    const std::vector<std::int64_t> order =
        random_order(total, total,
                     CounterRandom(seed_, random_stream(RandomUse::kClassOrder, epoch),
                                   static_cast<std::uint64_t>(2 * batch + part)));
    std::int64_t place = first;
    // A second round happens only if one round gives fewer images than places.
    for (std::int64_t turn = 0; place < first + count; ++turn) {
      const std::int64_t label = classes[at(order[static_cast<std::size_t>(turn % total)])];
      place += take(label, turn / total, epoch, batch, place, first + count - place, draws);
    }
  }

 private:
  // Takes up to `room` images of a class and returns how many. A later round continues where the
  // previous one stopped, and begins again at the class's first: none repeats before all were used.
  std::int64_t take(std::int64_t label, std::int64_t round, std::int64_t epoch, std::int64_t batch,
                    std::int64_t place, std::int64_t room, std::span<Draw> draws) const {
    const std::vector<std::int64_t>& members = data_.members()[at(label)];
    const auto n = static_cast<std::int64_t>(members.size());
    const std::int64_t whole = per_class_ > 0 ? per_class_ : n;
    const std::int64_t count = std::min(whole, room);
    const std::vector<std::int64_t> order =
        random_order(n, std::min(n, round * whole + count),
                     CounterRandom(seed_, random_stream(RandomUse::kImageOrder, epoch),
                                   static_cast<std::uint64_t>((batch << 36) + label)));
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t member = order[at((round * whole + j) % n)];
      draws[at(place + j)] = {members[at(member)], batch * batch_size_ + place + j};
    }
    return count;
  }

  const Dataset& data_;
  std::int64_t batch_size_;
  std::int64_t per_class_;
  std::uint64_t seed_;
};

class RandomClassesSampler : public Sampler {
 public:
  explicit RandomClassesSampler(const SamplerRequest& request)
      : batch_size_(request.batch_size), filler_(request, 0) {
    const Dataset& data = request.data;
    if (batch_size_ < 4)
      fail<UsageError>("random_classes: a batch of {}; use 4 or more", batch_size_);
    require_pairs(data);
    for (std::size_t c = 0; c < data.members().size(); ++c) {
      const auto images = static_cast<std::int64_t>(data.members()[c].size());
      if (images >= batch_size_) {
        fail<InputError>(
            "{}: class '{}' with its {} fills a batch of {}, which would hold nothing else; "
            "raise --batch or use --sampler pk",
            data.name(), data.classes()[c].name, counted(images, "image"), batch_size_);
      }
    }
    require_images(data, batch_size_);
    classes_.resize(data.classes().size());
    std::iota(classes_.begin(), classes_.end(), std::int64_t{0});
    batches_ = request.batches > 0 ? request.batches : data.size() / batch_size_;
    require_countable("random_classes", batches_, kMostCopies / batch_size_);
  }

  std::int64_t batch_size() const override { return batch_size_; }
  std::int64_t batches_per_epoch() const override { return batches_; }
  std::int64_t batch(std::int64_t epoch, std::int64_t batch, std::span<Draw> draws) const override {
    filler_.fill(classes_, epoch, batch, 0, 0, batch_size_, draws);
    return batch_size_;
  }

 private:
  std::int64_t batch_size_;
  std::int64_t batches_ = 0;
  std::vector<std::int64_t> classes_;
  ClassFiller filler_;
};

class CategorySampler : public Sampler {
 public:
  CategorySampler(const SamplerRequest& request, std::int64_t per_pair, std::int64_t per_class)
      : batch_size_(request.batch_size),
        per_pair_(per_pair),
        seed_(request.seed),
        filler_(request, per_class) {
    check(request.data, per_class);
    classes_.resize(request.data.categories().size());
    for (std::size_t c = 0; c < request.data.classes().size(); ++c) {
      const std::int64_t category = request.data.classes()[c].category;
      classes_[at(category)].push_back(static_cast<std::int64_t>(c));
    }
    std::erase_if(classes_, [](const auto& classes) { return classes.empty(); });
    for (std::size_t a = 0; a < classes_.size(); ++a) {
      for (std::size_t b = a + 1; b < classes_.size(); ++b) pairs_.emplace_back(a, b);
    }
    if (pairs_.empty()) {
      fail<InputError>("{}: a batch wants two categories, there is {}; use --sampler pk",
                       request.data.name(), classes_.size());
    }
    batches_ = request.batches > 0 ? request.batches
                                   : static_cast<std::int64_t>(pairs_.size()) * per_pair_;
    require_countable("category", batches_, kMostCopies / batch_size_);
  }

  std::int64_t batch_size() const override { return batch_size_; }
  std::int64_t batches_per_epoch() const override { return batches_; }

  std::int64_t batch(std::int64_t epoch, std::int64_t batch, std::span<Draw> draws) const override {
    const auto pairs = static_cast<std::int64_t>(pairs_.size());
    const std::int64_t turn = batch / per_pair_;
    const std::vector<std::int64_t> order =
        random_order(pairs, turn % pairs + 1,
                     CounterRandom(seed_, random_stream(RandomUse::kCategoryPairs, epoch),
                                   static_cast<std::uint64_t>(turn / pairs)));
    const auto [a, b] = pairs_[at(order[static_cast<std::size_t>(turn % pairs)])];
    const std::int64_t half = batch_size_ / 2;
    filler_.fill(classes_[a], epoch, batch, 0, 0, half, draws);
    filler_.fill(classes_[b], epoch, batch, 1, half, half, draws);
    return batch_size_;
  }

 private:
  void check(const Dataset& data, std::int64_t per_class) const {
    if (batch_size_ < 4 || batch_size_ % 2 != 0) {
      fail<UsageError>("category: a batch of {} has no two halves of 2 or more; use {}",
                       batch_size_, std::max<std::int64_t>(4, batch_size_ + 1));
    }
    if (per_class == 1)
      fail<UsageError>("category: k=1 image a class gives no pairs; use 2 or more");
    if (per_class > 0 && batch_size_ % (2 * per_class) != 0) {
      fail<UsageError>("category: half a batch of {} is no multiple of k={}; use {} or another k",
                       batch_size_, per_class,
                       (batch_size_ + 2 * per_class - 1) / (2 * per_class) * 2 * per_class);
    }
    for (const DataClass& of : data.classes()) {
      if (of.category < 0) {
        fail<InputError>("{}: class '{}' has no category; use --sampler pk", data.name(), of.name);
      }
    }
    require_pairs(data);
    require_images(data, batch_size_);
  }

  std::int64_t batch_size_;
  std::int64_t per_pair_;
  std::uint64_t seed_;
  std::int64_t batches_ = 0;
  std::vector<std::vector<std::int64_t>> classes_;          // of each category
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;  // of categories
  ClassFiller filler_;
};

}  // namespace

std::unique_ptr<Sampler> make_random_classes(const DataSpec&, const SamplerRequest& request) {
  return std::make_unique<RandomClassesSampler>(request);
}

std::unique_ptr<Sampler> make_category(const DataSpec& spec, const SamplerRequest& request) {
  return std::make_unique<CategorySampler>(request, spec.integer("per_pair", 10, 1, 1 << 20),
                                           spec.integer("k", 0, 0, 1 << 20));
}

}  // namespace rk
