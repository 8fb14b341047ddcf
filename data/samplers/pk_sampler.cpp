#include "data/samplers/samplers.h"
#include "data/spec.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

namespace rk {
namespace {

class PkSampler : public Sampler {
 public:
  PkSampler(const SamplerRequest& request, std::int64_t k)
      : data_(request.data),
        k_(k),
        classes_per_batch_(request.batch_size / k),
        parts_(request.parts),
        seed_(request.seed),
        order_(std::ssize(request.data.classes()), request.seed, RandomUse::kClassOrder) {
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
    const std::vector<std::int64_t> classes = order_.part(epoch, pass, first, classes_per_batch_);
    for (std::int64_t i = 0; i < classes_per_batch_; ++i) {
      draw_class(epoch, pass, classes[at(i)],
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
      fail<UsageError>("pk: --batch {} is no multiple of k={} images a class (--per-class); use {}",
                       batch_size, k_, what_fits(batch_size));
    }
    require_pairs(data_);
    if (largest_class() < k_) {
      fail<InputError>(
          "{}: {} images a class wanted (--per-class), the largest class has {}; use {}",
          data_.name(), k_, largest_class(), what_fits(batch_size));
    }
    const auto classes = static_cast<std::int64_t>(data_.classes().size());
    if (classes == 1 && classes_per_batch_ > 1) {
      fail<InputError>(
          "{}: holds a single class, which nothing can be told from; give more classes",
          data_.name());
    }
    if (classes < classes_per_batch_) {
      fail<InputError>("{}: a batch of {} with {} images a class needs {}, there are {}; use {}",
                       data_.name(), batch_size, k_, counted(classes_per_batch_, "class"), classes,
                       what_fits(batch_size));
    }
  }

  std::int64_t largest_class() const {
    std::size_t largest = 0;
    for (const auto& images : data_.members()) largest = std::max(largest, images.size());
    return static_cast<std::int64_t>(largest);
  }

  // The batch size nearest to `wanted` for which there are enough classes with k images of each,
  // and, if there are enough for that, which the parts can share. Of at least two classes if there
  // are two, for one alone teaches nothing.
  std::int64_t nearest_batch(std::int64_t wanted, std::int64_t k) const {
    const std::int64_t all = static_cast<std::int64_t>(data_.classes().size()) * k;
    const std::int64_t shared = std::lcm(k, parts_);
    const std::int64_t step = shared <= all ? shared : k;
    const std::int64_t most = all / step * step;
    const std::int64_t least = std::min(most, round_up(2 * k, step));
    return std::clamp((wanted + step / 2) / step * step, least, most);
  }

  // The number of images a class, nearest to k, with which a batch of this size can be drawn and
  // shared; 0: there is none.
  std::int64_t nearest_k(std::int64_t batch_size) const {
    const auto classes = static_cast<std::int64_t>(data_.classes().size());
    std::int64_t nearest = 0;
    if (batch_size % parts_ != 0) return nearest;
    for (std::int64_t k = 2; k <= std::min(largest_class(), batch_size / 2); ++k) {
      const bool fits = batch_size % k == 0 && batch_size / k <= classes;
      if (fits && (nearest == 0 || std::abs(k - k_) < std::abs(nearest - k_))) nearest = k;
    }
    return nearest;
  }

  // "--batch 80 or --per-class 8": flags with which this data set can be drawn from, as near as
  // possible to those given.
  std::string what_fits(std::int64_t batch_size) const {
    const std::int64_t largest = largest_class(), k = nearest_k(batch_size);
    std::string text;
    if (k_ <= largest) text = fmt::format("--batch {}", nearest_batch(batch_size, k_));
    if (k > 0) text += fmt::format("{}--per-class {}", text.empty() ? "" : " or ", k);
    if (!text.empty()) return text;
    return fmt::format("--batch {} --per-class {}", nearest_batch(batch_size, largest), largest);
  }

  void draw_class(std::int64_t epoch, std::int64_t pass, std::int64_t label,
                  std::span<Draw> draws) const {
    const std::vector<std::int64_t>& members = data_.members()[at(label)];
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
      const std::int64_t member = order[at((first + j) % n)];
      draws[at(j)] = {members[at(member)], pass * k_ + j};
    }
  }

  const Dataset& data_;
  std::int64_t k_;
  std::int64_t classes_per_batch_;
  std::int64_t parts_;
  std::uint64_t seed_;
  PassOrder order_;  // of the classes
  std::int64_t batches_ = 0;
  std::int64_t batches_per_pass_ = 1;
};

}  // namespace

std::unique_ptr<Sampler> make_pk(const DataSpec& spec, const SamplerRequest& request) {
  return std::make_unique<PkSampler>(request, spec.integer("k", 4, 1, 1 << 20));
}

}  // namespace rk
