#include "data/samplers/sampler.h"
#include "engine/base/error.h"

#include <algorithm>

namespace rk {
namespace {

class BatchShare final : public Sampler {
 public:
  BatchShare(const Sampler& whole, std::int64_t part, std::int64_t parts)
      : whole_(whole), first_(part * whole.batch_size() / parts), parts_(parts) {}

  std::int64_t batch_size() const override { return whole_.batch_size() / parts_; }
  std::int64_t batches_per_epoch() const override { return whole_.batches_per_epoch(); }
  std::int64_t batch(std::int64_t epoch, std::int64_t batch, std::span<Draw> draws) const override {
    std::vector<Draw> all(static_cast<std::size_t>(whole_.batch_size()));
    const std::int64_t count = whole_.batch(epoch, batch, all);
    const std::int64_t taken = std::clamp<std::int64_t>(count - first_, 0, batch_size());
    std::copy_n(all.begin() + first_, taken, draws.begin());
    return taken;
  }

 private:
  const Sampler& whole_;
  std::int64_t first_, parts_;
};

}  // namespace

std::unique_ptr<Sampler> make_batch_share(const Sampler& whole, std::int64_t part,
                                          std::int64_t parts) {
  expect(parts >= 1 && part >= 0 && part < parts && whole.batch_size() % parts == 0,
         "[sampler] expected part {} of {} equal parts of {} images", part, parts,
         whole.batch_size());
  return std::make_unique<BatchShare>(whole, part, parts);
}

}  // namespace rk
