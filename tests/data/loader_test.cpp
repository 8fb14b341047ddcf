#include "data/loader/loader.h"

#include "data/loader/picture_cache.h"
#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/system/read_file.h"
#include "engine/system/usable_cores.h"
#include "tests/data/picture_folder.h"
#include "tests/support/messages.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

namespace rk {
namespace {

struct Seen {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels, indices;
  std::int64_t epoch = 0, index = 0;
  bool operator==(const Seen&) const = default;
};

Seen copy_of(const Batch& batch) {
  return {{batch.pixels.begin(), batch.pixels.end()},
          {batch.labels.begin(), batch.labels.end()},
          {batch.indices.begin(), batch.indices.end()},
          batch.epoch,
          batch.index};
}

std::vector<Seen> take(Loader& loader, int batches) {
  std::vector<Seen> seen;
  for (int i = 0; i < batches; ++i) seen.push_back(copy_of(*loader.next()));
  return seen;
}

// Every kind of random augmentation, for output of 16 pixels.
AugmentOptions everything() {
  AugmentOptions options = center_crop(16, 16);
  options.crop = Crop::kRandomResized;
  options.area_min = 0.5;
  options.flip = 0.5;
  options.rotation = 20;
  options.translate = 0.1;
  return options;
}

const char* const kGlyphs = "glyphs:classes=8,images=6,size=20";

class LoaderOrder : public testing::TestWithParam<int> {};

TEST_P(LoaderOrder, IsTheSameForAnyThreadsDepthAndCache) {
  const Dataset data = open_dataset(kGlyphs, Split::kTrain);
  const auto sampler = make_sampler("pk:k=3", data, 12, 5);  // 4 batches an epoch
  LoaderOptions options;
  options.seed = 5;
  options.workers = 1;
  options.prefetch = 2;
  options.cache_bytes = 0;
  Loader reference(data, *sampler, everything(), options);
  const std::vector<Seen> expected = take(reference, 10);
  EXPECT_EQ(expected[5].epoch, 1);
  EXPECT_EQ(expected[5].index, 1);
  EXPECT_NE(expected[0].pixels, expected[4].pixels);

  options.workers = GetParam();
  options.prefetch = 2 + GetParam() % 3;
  for (const std::int64_t cache : {std::int64_t{0}, std::int64_t{30000}, std::int64_t{1} << 20}) {
    options.cache_bytes = cache;
    Loader loader(data, *sampler, everything(), options);
    EXPECT_EQ(take(loader, 10), expected);
    EXPECT_LE(loader.cached_bytes(), cache);
  }
}

TEST_P(LoaderOrder, IsTheSameFromAnyPointOn) {
  const Dataset data = open_dataset(kGlyphs, Split::kTrain);
  const auto sampler = make_sampler("pk:k=3", data, 12, 5);
  LoaderOptions options;
  options.workers = GetParam();
  Loader reference(data, *sampler, everything(), options);
  const std::vector<Seen> expected = take(reference, 11);
  for (const int begin : {1, 3, 4, 7}) {
    options.first_epoch = begin / 4;
    options.first_batch = begin % 4;
    Loader loader(data, *sampler, everything(), options);
    EXPECT_EQ(take(loader, 11 - begin), std::vector(expected.begin() + begin, expected.end()));
  }
  // Starting at the end of an epoch is starting at the beginning of the next.
  options.first_epoch = 0;
  options.first_batch = 4;
  Loader loader(data, *sampler, everything(), options);
  EXPECT_EQ(copy_of(*loader.next()), expected[4]);
}

INSTANTIATE_TEST_SUITE_P(Threads, LoaderOrder, testing::Values(1, 2, 4, 8));

// Another seed of the loader gives the same pictures with other augmentations.
TEST(Loader, TheSeedChangesTheAugmentationAlone) {
  const Dataset data = open_dataset(kGlyphs, Split::kTrain);
  const auto sampler = make_sampler("pk:k=3", data, 12, 5);
  const auto first = [&](std::uint64_t seed) {
    Loader loader(data, *sampler, everything(), {.seed = seed});
    return copy_of(*loader.next());
  };
  const Seen one = first(1), two = first(2);
  EXPECT_EQ(one, first(1));
  EXPECT_EQ(one.indices, two.indices);
  EXPECT_NE(one.pixels, two.pixels);
}

TEST(Loader, BatchesHoldWhatTheSamplerDrew) {
  const Dataset data = open_dataset(kGlyphs, Split::kTrain);
  const auto sampler = make_sampler("pk:k=3", data, 12, 5);
  Loader loader(data, *sampler, everything(), {.seed = 9});
  std::vector<std::uint8_t> scratch, square(16 * 16 * 3);
  for (std::int64_t n = 0; n < 8; ++n) {
    const std::int64_t epoch = n / 4, b = n % 4;
    const Batch& batch = *loader.next();
    ASSERT_EQ(batch.count, 12);
    ASSERT_EQ(batch.pixels.size(), 12U * square.size());
    EXPECT_EQ(batch.epoch, epoch);
    EXPECT_EQ(batch.index, b);
    std::vector<Draw> draws(12);
    sampler->batch(epoch, b, draws);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(batch.indices[i], draws[i].index);
      EXPECT_EQ(batch.labels[i], data.label(draws[i].index));
      augment(data.load(draws[i].index), everything(),
              augment_random(9, epoch, draws[i].index, draws[i].copy), square.data(), scratch);
      EXPECT_EQ(std::memcmp(square.data(), batch.pixels.data() + i * square.size(), square.size()),
                0);
    }
  }
}

// A source that fails the test if the caller still holds another picture (`own`) when it loads one.
class OneAtATime : public ImageSource {
 public:
  explicit OneAtATime(const Image& own) : own_(own) {}
  Image load(const DataItem&, const DataClass&) const override {
    EXPECT_EQ(own_.bytes(), 0U);
    return {8, 8};
  }
  std::string name(const DataItem&, const DataClass&) const override { return "picture"; }

 private:
  const Image& own_;
};

TEST(Loader, HoldsNoPictureWhileAnotherIsDecoded) {
  Image own(4, 4);
  const Dataset data("set", {{"a"}, {"b"}}, {{"c"}}, {}, std::make_shared<OneAtATime>(own));
  for (const std::int64_t room : {0, 1 << 20}) {
    PictureCache cache(data, room);
    EXPECT_EQ(cache.get(0, own).width(), 8);
    EXPECT_EQ(cache.get(1, own).width(), 8);
    EXPECT_EQ(cache.bytes(), room == 0 ? 0 : 2 * 8 * 8 * 3);
  }
}

TEST(Loader, EndsWhereAskedAndOtherwiseNever) {
  const Dataset data = open_dataset(kGlyphs, Split::kTrain);
  const auto sampler = make_sampler("pk:k=3", data, 12, 5);
  Loader loader(data, *sampler, everything(), {.first_epoch = 1, .first_batch = 2, .end_epoch = 2});
  EXPECT_NE(loader.next(), nullptr);
  EXPECT_EQ(loader.next()->index, 3);
  EXPECT_EQ(loader.next(), nullptr);
  EXPECT_EQ(loader.next(), nullptr);
}

// Ends without a hang, and with nothing that a sanitizer would find.
TEST(Loader, TakesTheThreadsThatTheMachineHas) {
  EXPECT_EQ(loading_threads(5), 5);
  EXPECT_EQ(loading_threads(0), std::min(usable_cores(), 32));
}

TEST(Loader, MayBeLeftAtAnyTime) {
  const Dataset data = open_dataset(kGlyphs, Split::kTrain);
  const auto sampler = make_sampler("pk:k=3", data, 12, 5);
  for (int batches = 0; batches < 4; ++batches) {
    Loader loader(data, *sampler, everything(), {.workers = 4});
    take(loader, batches);
  }
}

TEST(Loader, KeepsWhatFits) {
  const Dataset data = open_dataset(kGlyphs, Split::kTrain);
  const std::int64_t whole = data.size() * 20 * 20 * 3;
  LoaderOptions options;
  options.cache_bytes = whole;
  const auto sampler = make_sequential(data, 12);
  Loader loader(data, *sampler, center_crop(16, 16), options);
  take(loader, 8);
  EXPECT_EQ(loader.cached_bytes(), whole);
}

TEST(EvalLoader, AllItemsOnceInOrder) {
  const Dataset data = open_dataset(kGlyphs, Split::kTest);
  EvalLoader loader(data, 7, center_crop(16, 18), {});
  std::vector<std::int64_t> indices;
  std::vector<std::uint8_t> square(16 * 16 * 3), scratch;
  while (const Batch* batch = loader.next()) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch->count); ++i) {
      indices.push_back(batch->indices[i]);
      augment(data.load(batch->indices[i]), center_crop(16, 18), augment_random(0, 0, 0, 0),
              square.data(), scratch);
      EXPECT_EQ(std::memcmp(square.data(), batch->pixels.data() + i * square.size(), square.size()),
                0);
    }
  }
  ASSERT_EQ(static_cast<std::int64_t>(indices.size()), data.size());
  for (std::size_t i = 0; i < indices.size(); ++i)
    EXPECT_EQ(indices[i], static_cast<std::int64_t>(i));
}

// Bad pictures ------------------------------------------------------------------------------------

// 4 classes of 4 pictures; c1/2.png holds text.
struct OneBad {
  OneBad() {
    folder.classes("c", 4, 4);
    folder.write("c1/2.png", "this is no picture\n");
  }
  PictureFolder folder;
  std::int64_t bad = 6;
};

TEST(LoaderBad, IsReplacedByTheNextOfItsClassAndReportedOnce) {
  const OneBad one;
  const Dataset data = open_dataset(one.folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=4", data, 16, 5);
  std::vector<std::vector<Seen>> runs;
  for (const int workers : {1, 4}) {
    Loader loader(data, *sampler, everything(), {.workers = workers});
    runs.push_back(take(loader, 5));
    for (const Seen& seen : runs.back()) {
      EXPECT_EQ(std::count(seen.indices.begin(), seen.indices.end(), one.bad), 0);
      EXPECT_EQ(std::count(seen.indices.begin(), seen.indices.end(), one.bad + 1), 2);
      EXPECT_EQ(std::count(seen.labels.begin(), seen.labels.end(), 1), 4);
    }
    ASSERT_EQ(loader.bad_images().size(), 1U);
    EXPECT_EQ(loader.bad_images()[0].index, one.bad);
    EXPECT_TRUE(holds(loader.bad_images()[0].path, "c1/2.png"));
    EXPECT_TRUE(holds(loader.bad_images()[0].reason, "c1/2.png: "));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

// Augmented as the picture that was drawn would have been: by its own numbers, a replacement would
// be the same picture twice where it is drawn itself.
TEST(LoaderBad, AReplacementIsAugmentedInThePlaceOfTheOther) {
  const OneBad one;
  const Dataset data = open_dataset(one.folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=4", data, 16, 5);
  Loader loader(data, *sampler, everything(), {.seed = 9});
  std::vector<std::uint8_t> scratch, square(16 * 16 * 3);
  const Batch& batch = *loader.next();
  std::vector<Draw> draws(16);
  sampler->batch(0, 0, draws);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(batch.indices[i], draws[i].index == one.bad ? one.bad + 1 : draws[i].index);
    augment(data.load(batch.indices[i]), everything(),
            augment_random(9, 0, draws[i].index, draws[i].copy), square.data(), scratch);
    EXPECT_EQ(std::memcmp(square.data(), batch.pixels.data() + i * square.size(), square.size()),
              0);
  }
}

TEST(LoaderBad, ATenthOfAPercentIsAllowed) {
  EXPECT_EQ(allowed_bad(-1, 10), 10);
  EXPECT_EQ(allowed_bad(-1, 10'999), 10);
  EXPECT_EQ(allowed_bad(-1, 11'000), 11);
  EXPECT_EQ(allowed_bad(-1, 60'502), 60);
  EXPECT_EQ(allowed_bad(0, 60'502), 0);
  EXPECT_EQ(allowed_bad(70, 10), 70);
}

TEST(LoaderBad, TheLastOfAClassIsReplacedByTheFirst) {
  const PictureFolder folder;
  folder.classes("c", 2, 3);
  folder.write("c0/2.png", "");
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=3", data, 6, 5);
  Loader loader(data, *sampler, everything(), {});
  const Batch& batch = *loader.next();
  EXPECT_EQ(std::count(batch.indices.begin(), batch.indices.end(), 0), 2);
}

TEST(LoaderBad, EvaluationFailsNamingTheFile) {
  const OneBad one;
  const Dataset data = open_dataset(one.folder.spec(), Split::kTrain);
  for (const int workers : {1, 4}) {
    EvalLoader loader(data, 4, center_crop(16, 16), {.workers = workers, .bad = BadPolicy::kFail});
    EXPECT_EQ(loader.next()->index, 0);
    const std::string first = message_of<InputError>([&] { loader.next(); });
    EXPECT_TRUE(holds(first, "c1/2.png"));
    EXPECT_EQ(message_of<InputError>([&] { loader.next(); }), first);
  }
}

// The first of a batch, whichever worker fails first.
TEST(LoaderBad, EvaluationNamesTheFirstOfSeveral) {
  const OneBad one;
  for (const char* name : {"c1/0.png", "c1/3.png"}) one.folder.write(name, "x");
  const Dataset data = open_dataset(one.folder.spec(), Split::kTrain);
  for (const int workers : {1, 4}) {
    EvalLoader loader(data, 16, center_crop(16, 16), {.workers = workers, .bad = BadPolicy::kFail});
    EXPECT_TRUE(holds(message_of<InputError>([&] { loader.next(); }), "c1/0.png")) << workers;
  }
}

// Batches of one class each, of which one is left out whole, and of several.
TEST(LoaderBad, EvaluationMaySkip) {
  const OneBad one;
  one.folder.write("c0/0.png", "GIF89a");
  for (int i = 0; i < 4; ++i) one.folder.write(fmt::format("c2/{}.png", i), "x");
  const Dataset data = open_dataset(one.folder.spec(), Split::kTrain);
  for (const std::int64_t each : {4, 5}) {
    EvalLoader loader(data, each, center_crop(18, 18), {.workers = 3, .bad = BadPolicy::kSkip});
    std::vector<std::int64_t> indices;
    std::vector<std::uint8_t> square(18 * 18 * 3), scratch;
    while (const Batch* batch = loader.next()) {
      EXPECT_GT(batch->count, 0);
      for (std::size_t i = 0; i < static_cast<std::size_t>(batch->count); ++i) {
        indices.push_back(batch->indices[i]);
        EXPECT_EQ(batch->labels[i], data.label(batch->indices[i]));
        augment(data.load(batch->indices[i]), center_crop(18, 18), augment_random(0, 0, 0, 0),
                square.data(), scratch);
        EXPECT_EQ(
            std::memcmp(square.data(), batch->pixels.data() + i * square.size(), square.size()), 0);
      }
    }
    EXPECT_EQ(indices, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 7, 12, 13, 14, 15}));
    EXPECT_EQ(loader.bad_images().size(), 6U);
    EXPECT_EQ(loader.bad_images()[1].index, one.bad);
  }
}

TEST(LoaderBad, TooManyStopTheRunAtTheSameBatch) {
  const PictureFolder folder;
  folder.classes("c", 4, 8);
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 3; ++i) folder.write(fmt::format("c{}/{}.png", c, i), "x");
  }
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=2", data, 8, 5);
  std::vector<int> delivered;
  for (const int workers : {1, 8}) {
    Loader loader(data, *sampler, everything(), {.workers = workers});
    int batches = 0;
    const std::string message = message_of<InputError>([&] {
      for (; batches < 100; ++batches) loader.next();
    });
    delivered.push_back(batches);
    EXPECT_TRUE(holds(message, "11 of 32 images cannot be read, more than the 10 allowed"));
    EXPECT_TRUE(holds(message, ".png: "));
  }
  EXPECT_EQ(delivered[0], delivered[1]);
  Loader patient(data, *sampler, everything(), {.max_bad = 12});
  take(patient, 20);
  EXPECT_EQ(patient.bad_images().size(), 12U);
}

// Bad pictures that another loader met are counted, reported and left out as if this one had met
// them.
TEST(LoaderBad, WhatIsKnownIsCountedAndNotTriedAgain) {
  const PictureFolder folder;
  folder.classes("c", 4, 8);
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=2", data, 8, 5);
  LoaderOptions options;
  options.known_bad = {{2, data.item_name(2), "known: 2"}, {9, data.item_name(9), "known: 9"}};
  options.max_bad = 2;
  Loader loader(data, *sampler, everything(), options);
  ASSERT_EQ(loader.bad_images().size(), 2U);
  std::set<std::int64_t> used;
  for (int b = 0; b < 20; ++b) {
    const Batch* batch = loader.next();
    used.insert(batch->indices.begin(), batch->indices.end());
  }
  EXPECT_EQ(used.count(2) + used.count(9), 0U);
  EXPECT_GT(used.size(), 16U);
  ASSERT_EQ(loader.bad_images().size(), 2U);
  EXPECT_EQ(loader.bad_images()[1].reason, "known: 9");
  options.max_bad = 1;
  EXPECT_TRUE(
      holds(message_of<InputError>([&] { Loader(data, *sampler, everything(), options); }),
            "2 of 32 images cannot be read, more than the 1 allowed, the last being known"));
}

// In the order of the batch, whichever worker met them first: more of them than a short sort takes.
TEST(LoaderBad, ManyOfOneBatchAreReportedInItsOrder) {
  const PictureFolder folder;
  folder.classes("c", 2, 30);
  for (int i = 0; i < 26; ++i) folder.write(fmt::format("c0/{}.png", i), "x");
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=16", data, 32, 5);
  std::vector<Draw> draws(32);
  sampler->batch(0, 0, draws);
  std::vector<std::string> expected;
  for (const Draw& draw : draws) {
    if (data.label(draw.index) != 0) continue;
    for (std::int64_t step = 0; step < 30; ++step) {
      const std::string name = data.item_name((draw.index + step) % 30);
      if (std::filesystem::file_size(name) > 1) break;  // a picture
      if (std::find(expected.begin(), expected.end(), name) == expected.end()) {
        expected.push_back(name);
      }
    }
  }
  ASSERT_GE(expected.size(), 20U);
  for (const int workers : {1, 8}) {
    Loader loader(data, *sampler, everything(), {.workers = workers, .max_bad = 26});
    loader.next();
    std::vector<std::string> reported;
    for (const BadImage& image : loader.bad_images()) reported.push_back(image.path);
    EXPECT_EQ(reported, expected) << workers;
  }
}

TEST(LoaderBad, AClassWithNothingReadable) {
  const PictureFolder folder;
  folder.classes("c", 2, 2);
  folder.write("c1/0.png", "x");
  folder.write("c1/1.png", "x");
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=2", data, 4, 5);
  Loader loader(data, *sampler, everything(), {});
  EXPECT_TRUE(
      holds(message_of<InputError>([&] { loader.next(); }), "class 'c1' has no readable image"));
}

TEST(LoaderBad, AFileThatVanishesInBetween) {
  const PictureFolder folder;
  folder.classes("c", 2, 3);
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  std::filesystem::remove(folder.path() / "c0/1.png");
  const auto sampler = make_sampler("pk:k=3", data, 6, 5);
  Loader loader(data, *sampler, everything(), {});
  take(loader, 2);
  ASSERT_EQ(loader.bad_images().size(), 1U);
  EXPECT_TRUE(holds(loader.bad_images()[0].reason, "c0/1.png"));
}

// While the process may open no file, no picture must be blamed.
class LoaderWithoutFiles : public testing::Test {
 protected:
  LoaderWithoutFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    folder_.classes("c", 2, 4);
  }
  ~LoaderWithoutFiles() override { allow_files(true); }
  void allow_files(bool allow) const {
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, allow ? &before_ : &none);
  }

  const PictureFolder folder_;

 private:
  rlimit before_{};
};

TEST_F(LoaderWithoutFiles, FailuresOfTheSystemAreTriedAgain) {
  const Dataset data = open_dataset(folder_.spec(), Split::kTrain);
  const auto sampler = make_sequential(data, 4);
  allow_files(false);
  Loader loader(data, *sampler, center_crop(8, 8), {.workers = 2, .max_bad = 0});
  std::this_thread::sleep_for(std::chrono::milliseconds(250));  // every worker fails meanwhile
  allow_files(true);
  EXPECT_EQ(loader.next()->count, 4);
  EXPECT_EQ(loader.next()->count, 4);
  EXPECT_TRUE(loader.bad_images().empty());
}

TEST_F(LoaderWithoutFiles, FailuresOfTheSystemAreNoBadPictures) {
  const Dataset data = open_dataset(folder_.spec(), Split::kTrain);
  const auto sampler = make_sequential(data, 4);
  for (const BadPolicy policy : {BadPolicy::kReplace, BadPolicy::kSkip, BadPolicy::kFail}) {
    allow_files(false);
    Loader loader(data, *sampler, center_crop(8, 8),
                  {.workers = 2,
                   .bad = policy,
                   .max_bad = -1,
                   .end_epoch = 1,
                   .retry_waits = {std::chrono::milliseconds(1)}});
    EXPECT_THROW(loader.next(), SystemError);
    EXPECT_TRUE(loader.bad_images().empty());
    allow_files(true);
  }
}

class SlowSource : public ImageSource {
 public:
  Image load(const DataItem&, const DataClass&) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return Image(8, 8);
  }
  std::string name(const DataItem& item, const DataClass&) const override {
    return std::to_string(item.key);
  }
};

TEST(Loader, TheTimeThatNextWaitsIsCounted) {
  std::vector<DataItem> items;
  for (std::int64_t i = 0; i < 4; ++i) items.push_back({"", i, 0});
  const Dataset data("slow", items, {{"a", -1}}, {}, std::make_shared<SlowSource>());
  const auto sampler = make_sequential(data, 2);
  Loader loader(data, *sampler, center_crop(8, 8), {.workers = 1});
  EXPECT_EQ(loader.waited_seconds(), 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(loader.next()->index, 0);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  // Two pictures of 40 ms by one worker, which may have begun on them just before.
  EXPECT_GE(loader.waited_seconds(), 0.04);
  EXPECT_LE(loader.waited_seconds(), taken.count());
}

// A picture that fails for another reason than bad input, here for lack of memory.
class BrokenSource : public ImageSource {
 public:
  Image load(const DataItem& item, const DataClass&) const override {
    if (item.key == 5) throw std::bad_alloc();
    return Image(8, 8);
  }
  std::string name(const DataItem& item, const DataClass&) const override {
    return std::to_string(item.key);
  }
};

TEST(Loader, OtherErrorsOfWorkersComeOutOfNext) {
  std::vector<DataItem> items;
  for (std::int64_t i = 0; i < 12; ++i) items.push_back({"", i, i / 6});
  const Dataset data("broken", items, {{"a", -1}, {"b", -1}}, {}, std::make_shared<BrokenSource>());
  const auto sampler = make_sequential(data, 4);
  Loader loader(data, *sampler, center_crop(8, 8), {.workers = 4});
  EXPECT_EQ(loader.next()->index, 0);
  EXPECT_THROW(loader.next(), std::bad_alloc);
  EXPECT_THROW(loader.next(), std::bad_alloc);
}

}  // namespace
}  // namespace rk
