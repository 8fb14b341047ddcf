#include "data/samplers/samplers.h"
#include "data/spec.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/random_stream.h"

#include <algorithm>

namespace rk {
namespace {

class PkSampler : public Sampler {
 public:
  PkSampler(const SamplerRequest& request, std::int64_t k)
      : data_(request.data),
        k_(k),
        classes_per_batch_(request.batch_size / k),
        seed_(request.seed) {
    check(request.batch_size);
    batches_ = request.batches > 0 ? request.batches
                                   : std::max<std::int64_t>(1, data_.size() / request.batch_size);
    const auto classes = static_cast<std::int64_t>(data_.classes().size());
    batches_per_pass_ = classes / classes_per_batch_;
    // Above this the keys of the draws would not be distinct.
    const std::int64_t passes = std::min<std::int64_t>(1 << 24, kMostCopies / k_);
    if (batches_ / batches_per_pass_ >= passes) {
      fail<UsageError>(
          "pk: --batches {} go through all classes {} times an epoch; give {} or fewer", batches_,
          batches_ / batches_per_pass_, batches_per_pass_ * passes / 2);
    }
    expect(classes < kMostIndices, "[sampler] expected fewer than 2^36 classes");
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
      fail<UsageError>("pk: images of a class give no pairs by k={}; use 2 or more", k_);
    }
    if (batch_size < k_ || batch_size % k_ != 0) {
      fail<UsageError>(
          "pk: --batch {} is no multiple of k={} images a class; use {} or another k "
          "(--per-class)",
          batch_size, k_, std::max(k_, (batch_size + k_ / 2) / k_ * k_));
    }
    require_pairs(data_);
    std::size_t largest = 0;
    for (const auto& images : data_.members()) largest = std::max(largest, images.size());
    if (static_cast<std::int64_t>(largest) < k_) {
      fail<InputError>(
          "{}: {} images a class wanted, the largest class has {}; lower k (--per-class) to {} or "
          "less",
          data_.name(), k_, largest, largest);
    }
    const auto classes = static_cast<std::int64_t>(data_.classes().size());
    if (classes == 1 && classes_per_batch_ > 1) {
      fail<InputError>(
          "{}: holds a single class, which nothing can be told from; give more classes",
          data_.name());
    }
    if (classes < classes_per_batch_) {
      fail<InputError>(
          "{}: a batch of {} with {} images a class needs {}, there are {}; lower "
          "--batch to {} or raise k (--per-class)",
          data_.name(), batch_size, k_, counted(classes_per_batch_, "class"), classes,
          classes * k_);
    }
  }

  void draw_class(std::int64_t epoch, std::int64_t pass, std::int64_t label,
                  std::span<Draw> draws) const {
    const std::vector<std::int64_t>& members = data_.members()[static_cast<std::size_t>(label)];
    const auto n = static_cast<std::int64_t>(members.size());
    // One random order of the class's images serves `lasts` passes; the n mod k images left over
    // are not used until the next order.
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

}  // namespace

std::unique_ptr<Sampler> make_pk(const DataSpec& spec, const SamplerRequest& request) {
  return std::make_unique<PkSampler>(request, spec.integer("k", 4, 1, 1 << 20));
}

}  // namespace rk
