// Caches decoded pictures of a data set up to a number of bytes; the others are decoded at every
// access. Nothing is ever evicted: of a set that does not fit, a fixed part stays cached, which in
// random order is as good as any policy and does not thrash. Thread-safe; if two threads miss the
// same picture, both decode it and one copy is kept.
#pragma once

#include "data/sources/dataset.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace rk {

class PictureCache {
 public:
  PictureCache(const Dataset& data, std::int64_t max_bytes);
  ~PictureCache();
  PictureCache(const PictureCache&) = delete;
  PictureCache& operator=(const PictureCache&) = delete;

  // Returns the picture, either from the cache or decoded into `own`. Throws what Dataset::load()
  // throws.
  const Image& get(std::int64_t index, Image& own);
  std::int64_t bytes() const { return used_.load(std::memory_order_relaxed); }
  std::int64_t count() const;  // of cached pictures

 private:
  const Dataset& data_;
  std::int64_t max_bytes_;
  std::unique_ptr<std::atomic<const Image*>[]> kept_;  // [data.size()]
  std::atomic<std::int64_t> used_{0};
};

}  // namespace rk
