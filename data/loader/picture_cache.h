// Decoded pictures of a data set, kept until a number of bytes is reached; the rest are decoded at
// every visit. Nothing is ever dropped: a set that does not fit keeps a fixed part, which with
// random order is as good as anything and does not thrash. Thread-safe; two threads that miss the
// same picture both decode it and one copy is kept.
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

  // The picture, either from the cache or decoded into `own`. Throws what loading throws.
  const Image& get(std::int64_t index, Image& own);
  std::int64_t bytes() const { return used_.load(std::memory_order_relaxed); }
  std::int64_t count() const;  // of the pictures that are kept

 private:
  const Dataset& data_;
  std::int64_t max_bytes_;
  std::unique_ptr<std::atomic<const Image*>[]> kept_;  // [data.size()]
  std::atomic<std::int64_t> used_{0};
};

}  // namespace rk
