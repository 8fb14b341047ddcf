// Batches of pixels, prepared ahead by worker threads in a ring of preallocated memory.
//
// What comes out depends on (data set, sampler, options, seed, epoch, batch) alone: not on the
// number of threads, the depth of the ring or the batch it began with. next() allocates nothing.
// Decoded pictures are kept until cache_bytes are used, so small sets are read once.
//
// A picture that cannot be read: kReplace (training) takes the next of its class in the data set's
// order that can be; kFail (evaluation) throws from next(), naming the file, at the batch that
// holds it; kSkip leaves it out of its batch (a batch with none left is not delivered). Each is
// reported once, in the batch where it first counted. More than max_bad of them, or a class without
// any readable picture, end the run with an InputError, at the same batch for any number of
// threads. What the system would not read (engine/system/read_file.h) is no such picture: it is
// tried again and then thrown, whatever the policy.
#pragma once

#include "data/images/augment.h"
#include "data/samplers/sampler.h"
#include "data/sources/dataset.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct Batch {
  std::int64_t count = 0;
  int size = 0;  // pixels are [count, size, size, 3], uint8, HWC
  std::span<const std::uint8_t> pixels;
  std::span<const std::int64_t> labels;   // [count]
  std::span<const std::int64_t> indices;  // [count] in the data set, of the picture really used
  std::int64_t epoch = 0;
  std::int64_t index = 0;  // of the batch in its epoch
  bool last_of_epoch = false;
};

struct BadImage {
  std::int64_t index = 0;  // in the data set
  std::string path;
  std::string reason;  // one line that names the file
};

// --max-bad of so many images: -1 stands for max(10, 0.1 % of them).
std::int64_t allowed_bad(std::int64_t max_bad, std::int64_t images);
// InputError where more of the data cannot be read.
void require_few_bad(const Dataset& data, const std::vector<BadImage>& bad, std::int64_t allowed);

enum class BadPolicy { kReplace, kFail, kSkip };

struct LoaderOptions {
  int workers = 2;
  int prefetch = 3;  // batches in the ring, at least 2
  std::int64_t cache_bytes = std::int64_t{512} << 20;
  BadPolicy bad = BadPolicy::kReplace;
  std::int64_t max_bad = -1;  // -1: max(10, 0.1 % of the images); kSkip: no limit
  std::uint64_t seed = 0;
  std::int64_t first_epoch = 0;
  std::int64_t first_batch = 0;  // of the first epoch
  std::int64_t end_epoch = -1;   // next() returns null once it is reached; -1: endless
  // Met by the loader that this one goes on for: counted, and not tried again.
  std::vector<BadImage> known_bad = {};
};

class Loader {
 public:
  // The data set and the sampler must outlive the loader.
  Loader(const Dataset& data, const Sampler& sampler, const AugmentOptions& augment,
         const LoaderOptions& options);
  ~Loader();  // waits for the pictures under way, drops the rest
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the next call; null at the end. Throws what stopped the batch, and
  // the same again when called again.
  const Batch* next();

  // All so far, in the order of the batches; next() appends.
  const std::vector<BadImage>& bad_images() const;
  std::int64_t cached_bytes() const;
  std::int64_t cached_images() const;
  double waited_seconds() const;  // by next(), in total: what loading cost the trainer

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Evaluation over all of `data` once, in order: a sequential sampler and a loader in one.
class EvalLoader {
 public:
  EvalLoader(const Dataset& data, std::int64_t batch_size, const AugmentOptions& augment,
             LoaderOptions options);
  const Batch* next() { return loader_.next(); }
  const std::vector<BadImage>& bad_images() const { return loader_.bad_images(); }

 private:
  std::unique_ptr<Sampler> sampler_;
  Loader loader_;
};

}  // namespace rk
