#include "data/loader/picture_cache.h"

#include "engine/base/integers.h"

#include <algorithm>
#include <utility>

namespace rk {

PictureCache::PictureCache(const Dataset& data, std::int64_t max_bytes)
    : data_(data), max_bytes_(max_bytes), kept_(new std::atomic<const Image*>[at(data.size())]()) {}

PictureCache::~PictureCache() {
  for (std::int64_t i = 0; i < data_.size(); ++i) delete kept_[at(i)].load();
}

std::int64_t PictureCache::count() const {
  return std::count_if(kept_.get(), kept_.get() + data_.size(),
                       [](const auto& kept) { return kept.load() != nullptr; });
}

const Image& PictureCache::get(std::int64_t index, Image& own) {
  std::atomic<const Image*>& place = kept_[at(index)];
  if (const Image* kept = place.load(std::memory_order_acquire)) return *kept;
  own = Image();  // free it first: two of the largest pictures take a gigabyte
  own = data_.load(index);
  const auto bytes = static_cast<std::int64_t>(own.bytes());
  if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes > max_bytes_) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return own;
  }
  auto copy = std::make_unique<const Image>(std::move(own));
  const Image* expected = nullptr;
  if (place.compare_exchange_strong(expected, copy.get(), std::memory_order_acq_rel)) {
    return *copy.release();
  }
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  return *expected;
}

}  // namespace rk
