// Batches of pixels, prepared ahead by worker threads in a ring of preallocated memory.
//
// A batch depends only on (data set, sampler, options, seed, epoch, batch), not on the number of
// threads, the depth of the ring or the batch that loading started from. next() allocates nothing.
// Decoded pictures are cached up to cache_bytes, so small sets are read once.
//
// If a picture cannot be read: kReplace (training) takes the next readable picture of its class, in
// the order of the data set; kFail (evaluation) throws from next(), naming the file, at the batch
// that holds the picture; kSkip leaves the picture out of its batch (an empty batch is not
// delivered). Each bad picture is reported once, in the first batch that meets it. More than
// max_bad bad pictures, or with kReplace a class without any readable picture, ends the run with an
// InputError, at the same batch for any number of threads. A failure of the system (SystemError,
// engine/system/read_file.h) does not make a picture bad: reading is retried, for two seconds
// unless retry_waits says otherwise, then the error is thrown, whatever the policy.
#pragma once

#include "data/images/augment.h"
#include "data/samplers/sampler.h"
#include "data/sources/dataset.h"
#include "engine/base/error.h"

#include <chrono>
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
  std::span<const std::int64_t> indices;  // [count] in the data set, of the pictures used
  std::int64_t epoch = 0;
  std::int64_t index = 0;  // of the batch in its epoch
};

struct BadImage {
  std::int64_t index = 0;  // in the data set
  std::string path;
  std::string reason;  // one line that names the file
};

// The limit that --max-bad sets for a number of images: -1 stands for max(10, 0.1 % of them).
std::int64_t allowed_bad(std::int64_t max_bad, std::int64_t images);
// Throws InputError if more than `allowed` images cannot be read.
void require_few_bad(const Dataset& data, const std::vector<BadImage>& bad, std::int64_t allowed);

enum class BadPolicy { kReplace, kFail, kSkip };

// What next() throws under kFail; its text names the file.
class UnreadableImage : public InputError {
 public:
  using InputError::InputError;
};

// The threads that read and prepare pictures where `asked` is 0: one for each processor that this
// process may use, but no more than 32, which decode more than a GPU trains on.
int loading_threads(int asked);

struct LoaderOptions {
  int workers = 0;   // threads; 0: loading_threads()
  int prefetch = 3;  // batches in the ring, at least 2
  std::int64_t cache_bytes = std::int64_t{512} << 20;
  BadPolicy bad = BadPolicy::kReplace;
  std::int64_t max_bad = -1;  // -1: max(10, 0.1 % of the images); kSkip: no limit
  std::uint64_t seed = 0;
  std::int64_t first_epoch = 0;
  std::int64_t first_batch = 0;  // of the first epoch
  std::int64_t end_epoch = -1;   // next() returns null at this epoch; -1: endless
  // Before each further try of a read in which the system failed.
  std::vector<std::chrono::milliseconds> retry_waits = {std::chrono::milliseconds(100),
                                                        std::chrono::milliseconds(400),
                                                        std::chrono::milliseconds(1500)};
  // Bad pictures found before a resume: they are counted, but not read again.
  std::vector<BadImage> known_bad = {};
};

class Loader {
 public:
  // The data set and the sampler must outlive the loader.
  Loader(const Dataset& data, const Sampler& sampler, const AugmentOptions& augment,
         const LoaderOptions& options);
  ~Loader();  // waits for pictures in progress, drops the rest
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns the next batch, valid until the next call; null at the end. Throws the error that
  // stopped the batch, and throws it again on every later call.
  const Batch* next();

  // All bad pictures so far, in batch order; next() appends to them.
  const std::vector<BadImage>& bad_images() const;
  std::int64_t cached_bytes() const;
  std::int64_t cached_images() const;
  double waited_seconds() const;  // total time next() waited: the cost of loading to the trainer

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
