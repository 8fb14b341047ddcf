// Samplers that ignore the classes of the images.
#include "data/samplers/samplers.h"
#include "data/spec.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <vector>

namespace rk {
namespace {

class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(const SamplerRequest& request)
      : size_(request.data.size()),
        batch_size_(request.batch_size),
        order_(size_, request.seed, RandomUse::kImageOrder) {
    if (batch_size_ < 1) fail<UsageError>("random: a batch of {}; use 1 or more", batch_size_);
    require_images(request.data, batch_size_);
    batches_per_pass_ = size_ / batch_size_;
    batches_ = request.batches > 0 ? request.batches : batches_per_pass_;
    require_countable("random", batches_, kMostCopies * batches_per_pass_);
  }

  std::int64_t batch_size() const override { return batch_size_; }
  std::int64_t batches_per_epoch() const override { return batches_; }

  std::int64_t batch(std::int64_t epoch, std::int64_t batch, std::span<Draw> draws) const override {
    const std::int64_t pass = batch / batches_per_pass_;
    const std::int64_t first = batch % batches_per_pass_ * batch_size_;
    const std::vector<std::int64_t> images = order_.part(epoch, pass, first, batch_size_);
    for (std::int64_t i = 0; i < batch_size_; ++i) draws[at(i)] = {images[at(i)], pass};
    return batch_size_;
  }

 private:
  std::int64_t size_;
  std::int64_t batch_size_;
  PassOrder order_;
  std::int64_t batches_per_pass_ = 1;
  std::int64_t batches_ = 0;
};

class SequentialSampler : public Sampler {
 public:
  SequentialSampler(const Dataset& data, std::int64_t batch_size)
      : size_(data.size()), batch_size_(batch_size) {
    if (batch_size < 1) fail<UsageError>("a batch of {} images; use 1 or more", batch_size);
  }
  std::int64_t batch_size() const override { return batch_size_; }
  std::int64_t batches_per_epoch() const override { return divide_up(size_, batch_size_); }
  std::int64_t batch(std::int64_t, std::int64_t batch, std::span<Draw> draws) const override {
    const std::int64_t first = batch * batch_size_;
    const std::int64_t count = std::min(batch_size_, size_ - first);
    for (std::int64_t i = 0; i < count; ++i) draws[at(i)] = {first + i, 0};
    return count;
  }

 private:
  std::int64_t size_;
  std::int64_t batch_size_;
};

}  // namespace

std::unique_ptr<Sampler> make_random(const DataSpec&, const SamplerRequest& request) {
  return std::make_unique<RandomSampler>(request);
}

std::unique_ptr<Sampler> make_sequential(const Dataset& data, std::int64_t batch_size) {
  return std::make_unique<SequentialSampler>(data, batch_size);
}

}  // namespace rk
