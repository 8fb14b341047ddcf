#include "data/loader/loader.h"

#include "data/loader/picture_cache.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/system/read_file.h"
#include "engine/system/usable_cores.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace rk {
namespace {

// One batch of the ring. While `open`, workers fill it; once `ready`, the consumer owns it.
struct Slot {
  std::vector<std::uint8_t> pixels;                    // [N, size, size, 3]
  std::vector<std::int64_t> labels;                    // [N]
  std::vector<std::int64_t> indices;                   // [N]; -1: left out
  std::vector<Draw> draws;                             // [N]
  std::vector<std::pair<std::int64_t, BadImage>> bad;  // (place in the batch, what was bad there)
  std::int64_t epoch = 0, batch = 0;
  std::int64_t count = 0;    // draws in this batch
  std::int64_t claimed = 0;  // of `count`, taken by workers
  std::int64_t done = 0;
  bool ready = false;
  std::exception_ptr error;  // from the first failed place in the batch
  std::int64_t error_place = 0;
};

}  // namespace

std::int64_t allowed_bad(std::int64_t max_bad, std::int64_t images) {
  return max_bad >= 0 ? max_bad : std::max<std::int64_t>(10, images / 1000);
}

void require_few_bad(const Dataset& data, const std::vector<BadImage>& bad, std::int64_t allowed) {
  if (std::ssize(bad) <= allowed) return;
  fail<InputError>(
      "{}: {} of {} cannot be read, more than the {} allowed, the last being {}; repair "
      "them or raise --max-bad",
      data.name(), bad.size(), counted(data.size(), "image"), allowed, bad.back().reason);
}

struct Loader::State {
  State(const Dataset& d, const Sampler& s, const AugmentOptions& a, const LoaderOptions& o);
  ~State();

  const Batch* next();

  void start_threads();
  void work();  // the body of each thread
  // Called with `mutex` held:
  bool open_batch();
  void close_if_done(Slot& slot);
  // Called without `mutex`:
  void make_picture(Slot& slot, std::int64_t place, Image& own, std::vector<std::uint8_t>& scratch,
                    std::vector<BadImage>& met);
  bool known_bad(std::int64_t index, std::vector<BadImage>& met);
  const Image& load(std::int64_t index, Image& own);
  void leave_out_missing(Slot& slot) const;
  void count_bad(const BadImage& image);

  Slot& slot_of(std::int64_t sequence) {
    return slots[static_cast<std::size_t>(sequence % static_cast<std::int64_t>(slots.size()))];
  }
  std::size_t picture_bytes() const {
    return static_cast<std::size_t>(augment_options.size) *
           static_cast<std::size_t>(augment_options.size) * 3;
  }

  const Dataset& data;
  const Sampler& sampler;
  const AugmentOptions augment_options;
  const LoaderOptions options;
  const std::int64_t epoch_batches;
  const std::int64_t first;  // batches before the first one, over all epochs
  std::int64_t total = -1;   // batches to deliver, -1: endless
  std::int64_t max_bad;      // -1: no limit
  PictureCache cache;

  std::mutex mutex;               // guards all below except pixels of claimed places
  std::condition_variable room;   // a batch may be opened, or `stop` is set
  std::condition_variable ready;  // a batch is complete
  std::vector<Slot> slots;
  std::int64_t opened =
      0;  // batches whose draws are known; the last may still have unclaimed places
  std::int64_t delivered = 0;  // batches handed out; the last is still in use by the caller
  std::int64_t released = 0;   // batches given back
  bool stop = false;

  std::atomic<bool> given_up = false;  // the system failed to read a picture after all retries

  std::mutex bad_mutex;
  std::map<std::int64_t, BadImage> bad_seen;  // found by any worker; never decoded again

  Batch batch;  // what next() returned last
  std::exception_ptr failure;
  std::set<std::int64_t> reported;
  std::vector<BadImage> bad_images;
  double waited = 0;

  std::vector<std::thread> threads;  // last: they use all of the above
};

int loading_threads(int asked) { return asked > 0 ? asked : std::min(usable_cores(), 32); }

Loader::State::State(const Dataset& d, const Sampler& s, const AugmentOptions& a,
                     const LoaderOptions& o)
    : data(d),
      sampler(s),
      augment_options(a),
      options(o),
      epoch_batches(s.batches_per_epoch()),
      first(o.first_epoch * epoch_batches + o.first_batch),
      max_bad(o.max_bad),
      cache(d, o.cache_bytes) {
  expect(o.workers >= 0 && o.prefetch >= 2,
         "[loader] expected workers >= 0 and prefetch >= 2, got {} and {}", o.workers, o.prefetch);
  expect(o.first_epoch >= 0 && o.first_batch >= 0, "[loader] expected to begin at 0 or later");
  if (o.end_epoch >= 0) total = std::max<std::int64_t>(0, o.end_epoch * epoch_batches - first);
  if (epoch_batches == 0) total = 0;
  if (max_bad < 0 && o.bad == BadPolicy::kReplace) {
    max_bad = allowed_bad(max_bad, data.size());
  }
  for (const BadImage& image : o.known_bad) {
    bad_seen.emplace(image.index, image);
    count_bad(image);
  }
  const auto n = static_cast<std::size_t>(sampler.batch_size());
  slots.resize(static_cast<std::size_t>(o.prefetch));
  for (Slot& slot : slots) {
    slot.pixels.resize(n * picture_bytes());
    slot.labels.resize(n);
    slot.indices.resize(n);
    slot.draws.resize(n);
  }
}

void Loader::State::start_threads() {
  const int workers = loading_threads(options.workers);
  try {
    for (int i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    fail<DeviceError>("loader: only {} of {} threads could be started ({}); lower --workers",
                      threads.size(), workers, error.code().message());
  }
}

Loader::State::~State() {
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  room.notify_all();
  for (std::thread& thread : threads) thread.join();
}

// Opens the next batch if the ring has room for it. The draws are computed under the lock, by one
// worker: this takes a fraction of a millisecond even for ten thousand classes.
bool Loader::State::open_batch() {
  if (total >= 0 && opened >= total) return false;
  if (opened - released >= static_cast<std::int64_t>(slots.size())) return false;
  Slot& slot = slot_of(opened);
  slot.epoch = (first + opened) / epoch_batches;
  slot.batch = (first + opened) % epoch_batches;
  slot.claimed = slot.done = 0;
  slot.ready = false;
  slot.error = nullptr;
  slot.bad.clear();
  try {
    slot.count = sampler.batch(slot.epoch, slot.batch, slot.draws);
  } catch (...) {
    slot.count = 0;
    slot.error = std::current_exception();
  }
  ++opened;
  close_if_done(slot);
  room.notify_all();
  return true;
}

void Loader::State::close_if_done(Slot& slot) {
  if (slot.done < slot.count) return;
  // Stable: bad pictures that one place met keep their order.
  std::stable_sort(slot.bad.begin(), slot.bad.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  leave_out_missing(slot);
  slot.ready = true;
  ready.notify_one();
}

void Loader::State::work() {
  Image own;
  std::vector<std::uint8_t> scratch;
  std::vector<BadImage> met;
  std::unique_lock lock(mutex);
  for (;;) {
    if (stop) return;
    Slot* slot = opened > 0 ? &slot_of(opened - 1) : nullptr;
    if (slot == nullptr || slot->claimed == slot->count) {
      if (!open_batch()) room.wait(lock);
      continue;
    }
    const std::int64_t place = slot->claimed++;
    lock.unlock();
    met.clear();
    std::exception_ptr error;
    try {
      make_picture(*slot, place, own, scratch, met);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    try {
      for (BadImage& image : met) slot->bad.emplace_back(place, std::move(image));
    } catch (const std::bad_alloc&) {
      error = std::current_exception();
    }
    if (error && (!slot->error || place < slot->error_place)) {
      slot->error = error;
      slot->error_place = place;
    }
    ++slot->done;
    close_if_done(*slot);
  }
}

bool Loader::State::known_bad(std::int64_t index, std::vector<BadImage>& met) {
  const std::lock_guard lock(bad_mutex);
  const auto found = bad_seen.find(index);
  if (found == bad_seen.end()) return false;
  met.push_back(found->second);
  return true;
}

// Failures of the system may be temporary: reading is retried, and such a failure is never counted
// against the picture.
const Image& Loader::State::load(std::int64_t index, Image& own) {
  for (std::size_t tries = 0;; ++tries) {
    try {
      return cache.get(index, own);
    } catch (const SystemError&) {
      // Once it has failed for good, other pictures fail without retries.
      if (tries == options.retry_waits.size()) given_up = true;
      if (given_up) throw;
      std::this_thread::sleep_for(options.retry_waits[tries]);
    }
  }
}

void Loader::State::make_picture(Slot& slot, std::int64_t place, Image& own,
                                 std::vector<std::uint8_t>& scratch, std::vector<BadImage>& met) {
  const auto at = static_cast<std::size_t>(place);
  const Draw draw = slot.draws[at];
  const std::int64_t label = data.label(draw.index);
  const std::vector<std::int64_t>& members = data.members()[static_cast<std::size_t>(label)];
  const auto begin = static_cast<std::size_t>(
      std::lower_bound(members.begin(), members.end(), draw.index) - members.begin());
  const std::size_t candidates = options.bad == BadPolicy::kReplace ? members.size() : 1;
  slot.labels[at] = label;
  slot.indices[at] = -1;
  for (std::size_t step = 0; step < candidates; ++step) {
    const std::int64_t index = members[(begin + step) % members.size()];
    if (known_bad(index, met)) continue;
    const Image* picture = nullptr;
    try {
      picture = &load(index, own);
    } catch (const SystemError&) {
      throw;
    } catch (const InputError& error) {
      if (options.bad == BadPolicy::kFail) throw UnreadableImage(error.what());
      met.push_back({index, data.item_name(index), error.what()});
      const std::lock_guard lock(bad_mutex);
      bad_seen.emplace(index, met.back());
      continue;
    }
    augment(*picture, augment_options,
            augment_random(options.seed, slot.epoch, draw.index, draw.copy),
            slot.pixels.data() + at * picture_bytes(), scratch);
    slot.indices[at] = index;
    return;
  }
  if (options.bad == BadPolicy::kReplace) {
    fail<InputError>("{}: class '{}' has no readable image ({}); remove the class", data.name(),
                     data.classes()[static_cast<std::size_t>(label)].name, met.front().reason);
  }
}

// Closes the gaps left by kSkip.
void Loader::State::leave_out_missing(Slot& slot) const {
  if (slot.error || options.bad != BadPolicy::kSkip || slot.bad.empty()) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(slot.count); ++i) {
    if (slot.indices[i] < 0) continue;
    if (kept != i) {
      slot.indices[kept] = slot.indices[i];
      slot.labels[kept] = slot.labels[i];
      std::copy_n(slot.pixels.data() + i * picture_bytes(), picture_bytes(),
                  slot.pixels.data() + kept * picture_bytes());
    }
    ++kept;
  }
  slot.count = slot.done = slot.claimed = static_cast<std::int64_t>(kept);
}

void Loader::State::count_bad(const BadImage& image) {
  if (!reported.insert(image.index).second) return;
  bad_images.push_back(image);
  if (max_bad >= 0) require_few_bad(data, bad_images, max_bad);
}

const Batch* Loader::State::next() {
  if (failure) std::rethrow_exception(failure);
  for (;;) {
    std::unique_lock lock(mutex);
    if (released < delivered) {
      released = delivered;
      room.notify_all();
    }
    if (total >= 0 && delivered >= total) return nullptr;
    Slot& slot = slot_of(delivered);
    const auto is_ready = [&] { return opened > delivered && slot.ready; };
    if (!is_ready()) {
      const auto start = std::chrono::steady_clock::now();
      ready.wait(lock, is_ready);
      waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    ++delivered;
    lock.unlock();
    try {
      // In batch order, so that a run stops at the same batch for any number of threads.
      for (const auto& [place, image] : slot.bad) count_bad(image);
      if (slot.error) std::rethrow_exception(slot.error);
    } catch (...) {
      failure = std::current_exception();
      throw;
    }
    if (slot.count == 0) continue;  // every picture was skipped
    const auto count = static_cast<std::size_t>(slot.count);
    batch.count = slot.count;
    batch.size = augment_options.size;
    batch.pixels = {slot.pixels.data(), count * picture_bytes()};
    batch.labels = {slot.labels.data(), count};
    batch.indices = {slot.indices.data(), count};
    batch.epoch = slot.epoch;
    batch.index = slot.batch;
    return &batch;
  }
}

Loader::Loader(const Dataset& data, const Sampler& sampler, const AugmentOptions& augment,
               const LoaderOptions& options)
    : state_(std::make_unique<State>(data, sampler, augment, options)) {
  state_->start_threads();  // after State is built: its destructor joins any started threads
}
Loader::~Loader() = default;

const Batch* Loader::next() { return state_->next(); }
const std::vector<BadImage>& Loader::bad_images() const { return state_->bad_images; }
std::int64_t Loader::cached_bytes() const { return state_->cache.bytes(); }
std::int64_t Loader::cached_images() const { return state_->cache.count(); }
double Loader::waited_seconds() const { return state_->waited; }

namespace {

LoaderOptions one_epoch(LoaderOptions options) {
  options.first_epoch = options.first_batch = 0;
  options.end_epoch = 1;
  return options;
}

}  // namespace

EvalLoader::EvalLoader(const Dataset& data, std::int64_t batch_size, const AugmentOptions& augment,
                       LoaderOptions options)
    : sampler_(make_sequential(data, batch_size)),
      loader_(data, *sampler_, augment, one_epoch(std::move(options))) {}

}  // namespace rk
