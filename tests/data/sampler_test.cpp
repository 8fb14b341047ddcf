#include "data/samplers/sampler.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/random_stream.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

namespace rk {
namespace {

class NoPictures : public ImageSource {
 public:
  Image load(const DataItem&, const DataClass&) const override { return Image(1, 1); }
  std::string name(const DataItem& item, const DataClass&) const override { return item.path; }
};

// A data set with classes of these sizes.
Dataset made_of(const std::vector<int>& sizes) {
  std::vector<DataItem> items;
  std::vector<DataClass> classes;
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    classes.push_back({fmt::format("class{}", c), -1});
    for (int i = 0; i < sizes[c]; ++i) {
      items.push_back({fmt::format("{}/{}", c, i), 0, static_cast<std::int64_t>(c)});
    }
  }
  return Dataset("made", items, classes, {}, std::make_shared<NoPictures>());
}

std::vector<Draw> draws_of(const Sampler& sampler, std::int64_t epoch, std::int64_t batch) {
  std::vector<Draw> draws(static_cast<std::size_t>(sampler.batch_size()));
  EXPECT_EQ(sampler.batch(epoch, batch, draws), sampler.batch_size());
  return draws;
}

std::vector<std::int64_t> indices_of(const std::vector<Draw>& draws) {
  std::vector<std::int64_t> indices;
  for (const Draw& d : draws) indices.push_back(d.index);
  return indices;
}

TEST(PkSampler, ClassesLeftOverDiffer) {
  const Dataset data = made_of(std::vector<int>(7, 4));
  const auto sampler = make_sampler("pk:k=2", data, 8, 7);  // 4 of 7 classes, one batch a pass
  std::set<std::set<std::int64_t>> seen;
  for (std::int64_t pass = 0; pass < 20; ++pass) {
    std::set<std::int64_t> classes;
    for (const Draw& d : draws_of(*sampler, 0, pass)) classes.insert(data.label(d.index));
    EXPECT_EQ(classes.size(), 4U);
    seen.insert(classes);
  }
  EXPECT_GE(seen.size(), 8U);  // of 35
}

TEST(PkSampler, ABatchIsAFunctionOfSeedEpochAndBatch) {
  const Dataset data = made_of(std::vector<int>(20, 6));
  const auto a = make_sampler("pk", data, 32, 7), b = make_sampler("pk:k=4", data, 32, 7);
  const auto other = make_sampler("pk", data, 32, 8);
  const auto late = indices_of(draws_of(*a, 5, 2));
  for (std::int64_t i = 0; i < 3; ++i) draws_of(*b, 5, i);
  EXPECT_EQ(indices_of(draws_of(*b, 5, 2)), late);
  EXPECT_NE(indices_of(draws_of(*a, 4, 2)), late);
  EXPECT_NE(indices_of(draws_of(*a, 5, 1)), late);
  EXPECT_NE(indices_of(draws_of(*other, 5, 2)), late);
}

// The seed draws which classes meet and, independently, which of their images.
TEST(PkSampler, TheSeedDrawsClassesAndImages) {
  const Dataset data = made_of(std::vector<int>(20, 6));
  std::set<std::vector<std::int64_t>> classes, images;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<std::int64_t> labels, own;
    for (const Draw& d : draws_of(*make_sampler("pk:k=4", data, 80, seed), 0, 0)) {
      labels.push_back(data.label(d.index));
      if (labels.back() == labels.front()) own.push_back(d.index % 6);
    }
    classes.insert(labels);
    images.insert(own);
  }
  // Eight draws from 20! orders of classes and 360 ordered choices of four in six images hardly
  // ever repeat.
  EXPECT_EQ(classes.size(), 8U);
  EXPECT_GE(images.size(), 6U);
}

TEST(PkSampler, EveryClassAndImageIsAsLikely) {
  const Dataset data = made_of(std::vector<int>(10, 5));
  const auto sampler = make_sampler("pk:k=2", data, 8, 3);
  std::vector<int> times(50);
  constexpr int kBatches = 5000;
  for (std::int64_t b = 0; b < kBatches; ++b) {
    for (const Draw& d : draws_of(*sampler, b / 100, b % 100))
      ++times[static_cast<std::size_t>(d.index)];
  }
  // 800 each; independent draws have a standard deviation of sqrt(800) = 28, sampling without
  // replacement a smaller one.
  for (const int t : times) EXPECT_NEAR(t, kBatches * 8 / 50.0, 4 * 28);
}

TEST(PkSampler, BatchesAnEpoch) {
  const Dataset data = made_of(std::vector<int>(136, 20));
  EXPECT_EQ(make_sampler("pk:k=4", data, 128, 0)->batches_per_epoch(), 21);
  EXPECT_EQ(make_sampler("pk:k=4", data, 128, 0, 5)->batches_per_epoch(), 5);
  EXPECT_EQ(make_sampler("pk:k=4", made_of({2, 4}), 8, 0)->batches_per_epoch(), 1);
}

TEST(PkSampler, BadInput) {
  const auto input_error = [](const std::vector<int>& sizes, std::int64_t n, const char* text) {
    const Dataset data = made_of(sizes);
    return message_of<InputError>([&] { make_sampler(text, data, n, 0); });
  };
  EXPECT_TRUE(
      holds(input_error({4, 1, 4}, 8, "pk:k=4"), "class 'class1' has 1 image, training needs two"));
  EXPECT_TRUE(holds(input_error({4, 0, 4}, 8, "pk:k=4"), "class 'class1' has 0 images"));
  EXPECT_TRUE(holds(input_error({4, 5}, 12, "pk:k=6"),
                    "the largest class has 5; use --batch 10 --per-class 5"));
  EXPECT_TRUE(
      holds(input_error({4, 4, 4}, 16, "pk:k=4"), "needs 4 classes, there are 3; use --batch 12"));
  EXPECT_TRUE(holds(input_error({4}, 8, "pk:k=4"), "holds a single class, which nothing can be"));
}

TEST(PkSampler, WrongUsage) {
  const Dataset data = made_of({4, 4, 4, 4});
  const auto usage_error = [&](std::int64_t n, const char* text, std::int64_t batches = 0) {
    return message_of<UsageError>([&] { make_sampler(text, data, n, 0, batches); });
  };
  EXPECT_TRUE(
      holds(usage_error(10, "pk:k=4"),
            "--batch 10 is no multiple of k=4 images a class (--per-class); use --batch 12"));
  EXPECT_TRUE(holds(usage_error(0, "pk:k=4"), "--batch 0"));
  const std::int64_t many = std::int64_t{1} << 25;  // two batches see each class once
  EXPECT_TRUE(holds(usage_error(8, "pk:k=4", many), "--batches 33554432 go through all classes"));
  EXPECT_TRUE(holds(usage_error(8, "pk:k=4", many), "give 16777216 or fewer"));
  EXPECT_NO_THROW(make_sampler("pk:k=4", data, 8, 0, many - 1));
  EXPECT_TRUE(holds(usage_error(8, "pk:k=1"), "give no pairs"));
  EXPECT_TRUE(holds(usage_error(8, "pk:k=four"), "k=four"));
  EXPECT_TRUE(holds(usage_error(8, "pk:p=4"), "no parameter 'p'"));
  EXPECT_TRUE(holds(usage_error(8, "kp"), "'kp' is no sampler; did you mean pk?"));
  EXPECT_TRUE(holds(usage_error(8, "pk", -1), "-1 batches"));
}

struct Flags {
  std::int64_t batch, per_class;
};

// What a message advises instead of `given`: "use --batch 80 or --per-class 8" are two ways, "use
// --batch 260 --per-class 13" is one.
std::vector<Flags> advised(const std::string& message, const Flags& given) {
  std::vector<Flags> ways;
  std::string rest = message.substr(message.find("; use ") + 6) + " or ";
  for (std::size_t end; (end = rest.find(" or ")) != std::string::npos; rest.erase(0, end + 4)) {
    std::istringstream way(rest.substr(0, end));
    Flags flags = given;
    std::int64_t value = 0;
    for (std::string flag; way >> flag >> value;) {
      (flag == "--batch" ? flags.batch : flags.per_class) = value;
    }
    ways.push_back(flags);
  }
  return ways;
}

TEST(PkSampler, ItsAdviceWorks) {
  std::vector<std::vector<int>> sets = {{2, 3}, {7, 5, 9}, std::vector<int>(20, 12)};
  sets.back().back() = 13;
  for (const std::vector<int>& sizes : sets) {
    const Dataset data = made_of(sizes);
    const auto draw = [&](const Flags& flags, std::int64_t parts) {
      make_sampler(fmt::format("pk:k={}", flags.per_class), data, flags.batch, 0, 0, parts);
    };
    for (const std::int64_t parts : {1, 2, 3}) {
      for (Flags given{1, 2}; given.per_class < 20; given.batch += 7) {
        if (given.batch > 300) given = {1, given.per_class + 1};
        const std::string message = message_if_any<Error>([&] { draw(given, parts); });
        if (message.empty()) continue;
        for (const Flags& way : advised(message, given)) {
          EXPECT_NO_THROW(draw(way, parts)) << message;
          // Where the classes are too few for the processes, train names their number.
          const bool shared = std::lcm(way.per_class, parts) > std::ssize(sizes) * way.per_class ||
                              way.batch % parts == 0;
          EXPECT_TRUE(shared) << message;
        }
      }
    }
  }
}

TEST(PkSampler, AdvisesWhatIsNearest) {
  std::vector<int> sizes(20, 12);
  sizes[3] = 13;
  const Dataset data = made_of(sizes);
  const auto advice = [&](std::int64_t batch, const char* text, std::int64_t parts = 1) {
    const std::string message =
        message_of<Error>([&] { make_sampler(text, data, batch, 0, 0, parts); });
    return message.substr(message.find("; use "));
  };
  EXPECT_EQ(advice(256, "pk:k=4"), "; use --batch 80");
  EXPECT_EQ(advice(256, "pk:k=4", 3), "; use --batch 72");
  EXPECT_EQ(advice(256, "pk:k=16"), "; use --batch 260 --per-class 13");
  EXPECT_EQ(advice(60, "pk:k=13"), "; use --batch 65 or --per-class 12");
  EXPECT_EQ(advice(64, "pk:k=2"), "; use --batch 40 or --per-class 4");
  EXPECT_EQ(advice(82, "pk:k=4"), "; use --batch 80");
  EXPECT_EQ(advice(3, "pk:k=4"), "; use --batch 8");
}

// A data set with categories of classes of these sizes.
Dataset made_of_categories(const std::vector<std::vector<int>>& categories) {
  std::vector<DataItem> items;
  std::vector<DataClass> classes;
  std::vector<std::string> names;
  for (const std::vector<int>& sizes : categories) {
    for (const int size : sizes) {
      const auto label = static_cast<std::int64_t>(classes.size());
      classes.push_back({fmt::format("class{}", label), static_cast<std::int64_t>(names.size())});
      for (int i = 0; i < size; ++i) items.push_back({fmt::format("{}/{}", label, i), 0, label});
    }
    names.push_back(fmt::format("category{}", names.size()));
  }
  return Dataset("made", items, classes, names, std::make_shared<NoPictures>());
}

// The classes of an epoch's first batches.
std::set<std::int64_t> classes_of(const Dataset& data, const Sampler& sampler,
                                  std::int64_t batches) {
  std::set<std::int64_t> classes;
  for (std::int64_t b = 0; b < batches; ++b) {
    for (const Draw& d : draws_of(sampler, 0, b)) classes.insert(data.label(d.index));
  }
  return classes;
}

TEST(CategorySampler, EveryPairOfCategoriesOnceAnEpochHalfAndHalf) {
  const Dataset data = made_of_categories({{3, 4, 5}, {2, 2, 2, 2, 2}, {6, 6}, {20, 3}});
  const auto sampler = make_sampler("category:per_pair=3", data, 16, 7);
  ASSERT_EQ(sampler->batches_per_epoch(), 6 * 3);
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> orders;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    orders.emplace_back();
    for (std::int64_t b = 0; b < 18; ++b) {
      const std::vector<Draw> draws = draws_of(*sampler, epoch, b);
      const auto category = [&](std::size_t at) { return data.category(draws[at].index); };
      for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(category(i), category(0));
      for (std::size_t i = 9; i < 16; ++i) EXPECT_EQ(category(i), category(8));
      EXPECT_LT(category(0), category(8));
      const std::pair pair(category(0), category(8));
      if (b % 3 == 0) {
        orders.back().push_back(pair);
      } else {
        EXPECT_EQ(pair, orders.back().back()) << "the batches of a pair come in a row";
      }
    }
    const std::set<std::pair<std::int64_t, std::int64_t>> pairs(orders.back().begin(),
                                                                orders.back().end());
    EXPECT_EQ(pairs.size(), 6U);
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST(CategorySampler, EveryClassComes) {
  const Dataset data = made_of_categories({{3, 4, 5, 6}, {2, 2, 2, 2, 2}});
  const auto sampler = make_sampler("category", data, 16, 7);
  EXPECT_EQ(sampler->batches_per_epoch(), 10);
  EXPECT_EQ(classes_of(data, *sampler, 10).size(), 9U);
}

// Two classes of eight images, taken by fours, fill their half of the batch (16) in two rounds: the
// second must take the images that the first left.
TEST(CategorySampler, ASecondRoundTakesTheImagesThatAreLeft) {
  const Dataset data = made_of_categories({{8, 8}, {6, 20, 20}});
  const auto sampler = make_sampler("category:per_pair=1,k=4", data, 32, 7);
  const std::vector<Draw> draws = draws_of(*sampler, 0, 0);
  const std::vector<std::int64_t> indices =
      indices_of(std::vector(draws.begin(), draws.begin() + 16));
  EXPECT_EQ(std::set<std::int64_t>(indices.begin(), indices.end()).size(), 16U);
  // The first round must not depend on whether there is a second.
  const auto one_round = make_sampler("category:per_pair=1,k=4", data, 16, 7);
  const std::vector<std::int64_t> first = indices_of(draws_of(*one_round, 0, 0));
  EXPECT_EQ(std::vector(first.begin(), first.begin() + 8),
            std::vector(indices.begin(), indices.begin() + 8));
}

TEST(RandomClassesSampler, EveryClassComes) {
  const Dataset data = made_of({3, 4, 5, 2, 6, 7, 3, 2});
  const auto sampler = make_sampler("random_classes", data, 12, 7);
  EXPECT_EQ(sampler->batches_per_epoch(), 32 / 12);
  EXPECT_EQ(classes_of(data, *sampler, 20).size(), 8U);
}

TEST(RandomSampler, EveryImageOnceAPass) {
  const Dataset data = made_of({3, 1, 8});
  const auto sampler = make_sampler("random", data, 4, 7);
  EXPECT_EQ(sampler->batches_per_epoch(), 3);
  std::vector<std::int64_t> first;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> all;
    for (std::int64_t b = 0; b < 3; ++b) {
      for (const Draw& d : draws_of(*sampler, epoch, b)) all.push_back(d.index);
    }
    EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 12U);
    if (epoch == 0) first = all;
    EXPECT_EQ(all == first, epoch == 0) << "an order of its own for each epoch";
  }
}

// A resumed run asks for batches from the middle, so none may depend on earlier calls.
TEST(Samplers, ABatchIsAFunctionOfSeedEpochAndBatch) {
  const Dataset data = made_of_categories({{3, 4, 5}, {4, 4, 4, 4}, {6, 6}});
  for (const std::string text : {"category", "category:k=4", "random_classes", "random"}) {
    const auto a = make_sampler(text, data, 16, 7, 50), b = make_sampler(text, data, 16, 7, 50);
    EXPECT_EQ(a->batches_per_epoch(), 50) << text;
    const auto other = make_sampler(text, data, 16, 8, 50);
    const auto late = draws_of(*a, 5, 32);
    for (std::int64_t i = 0; i < 3; ++i) draws_of(*b, 5, i);
    const auto again = draws_of(*b, 5, 32);
    for (std::size_t i = 0; i < late.size(); ++i) {
      EXPECT_EQ(again[i].index, late[i].index) << text;
      EXPECT_EQ(again[i].copy, late[i].copy) << text;
    }
    EXPECT_NE(indices_of(draws_of(*a, 4, 32)), indices_of(late)) << text;
    EXPECT_NE(indices_of(draws_of(*a, 5, 31)), indices_of(late)) << text;
    EXPECT_NE(indices_of(draws_of(*other, 5, 32)), indices_of(late)) << text;
    std::set<std::pair<std::int64_t, std::int64_t>> appearances;
    for (std::int64_t batch = 0; batch < 50; ++batch) {
      for (const Draw& d : draws_of(*a, 0, batch)) {
        EXPECT_TRUE(appearances.emplace(d.index, d.copy).second) << text;
      }
    }
  }
}

// The sampler's draws of a batch, in runs of `each`: where in its class every image stands.
std::vector<std::vector<std::int64_t>> orders_of(const Dataset& data, const Sampler& sampler,
                                                 std::int64_t batch, std::size_t each) {
  std::vector<std::vector<std::int64_t>> orders;
  for (const Draw& d : draws_of(sampler, 0, batch)) {
    if (orders.empty() || orders.back().size() == each) orders.emplace_back();
    const auto& members = data.members()[static_cast<std::size_t>(data.label(d.index))];
    orders.back().push_back(std::ranges::find(members, d.index) - members.begin());
  }
  return orders;
}

// Whatever is drawn by itself has random numbers of its own: with ten images a class, or eight
// classes a category, hardly any two of some hundred orders are the same.
TEST(Samplers, EveryClassOfEveryBatchHasAnOrderOfItsOwn) {
  constexpr std::size_t kImages = 10, kClasses = 8;
  const Dataset data = made_of_categories(
      {std::vector<int>(kClasses, kImages), std::vector<int>(kClasses, kImages)});
  const auto pk = make_sampler("pk:k=10", data, 160, 7);
  const auto category = make_sampler("category:per_pair=12", data, 160, 7);
  std::set<std::vector<std::int64_t>> of_pk, of_category, of_classes;
  for (std::int64_t b = 0; b < 12; ++b) {
    for (const auto& order : orders_of(data, *pk, b, kImages)) of_pk.insert(order);
    for (const auto& order : orders_of(data, *category, b, kImages)) of_category.insert(order);
    const std::vector<Draw> draws = draws_of(*category, 0, b);
    for (std::size_t half = 0; half < 2; ++half) {
      std::vector<std::int64_t> classes;
      for (std::size_t c = 0; c < kClasses; ++c) {
        const std::int64_t index = draws[(half * kClasses + c) * kImages].index;
        classes.push_back(data.label(index) % std::int64_t{kClasses});
      }
      of_classes.insert(classes);
    }
  }
  EXPECT_EQ(of_pk.size(), 12 * 2 * kClasses);
  EXPECT_EQ(of_category.size(), 12 * 2 * kClasses);
  EXPECT_EQ(of_classes.size(), 24U);
}

// More batches than use up all images, or all pairs of categories, go through them anew.
TEST(Samplers, EveryPassOfAnEpochHasAnOrderOfItsOwn) {
  const Dataset data = made_of_categories({{4, 4}, {4, 4}, {4, 4}, {4, 4}});
  const auto images = make_sampler("random", data, 16, 7, 6);
  const auto pairs = make_sampler("category:per_pair=1", data, 16, 7, 18);
  std::set<std::vector<std::int64_t>> of_images, of_pairs;
  for (std::int64_t pass = 0; pass < 3; ++pass) {
    std::vector<std::int64_t> all;
    for (std::int64_t b = 2 * pass; b < 2 * pass + 2; ++b) {
      const std::vector<std::int64_t> own = indices_of(draws_of(*images, 0, b));
      all.insert(all.end(), own.begin(), own.end());
    }
    of_images.insert(all);
    std::vector<std::int64_t> order;
    for (std::int64_t b = 6 * pass; b < 6 * pass + 6; ++b) {
      const std::vector<Draw> draws = draws_of(*pairs, 0, b);
      order.push_back(4 * data.category(draws[0].index) + data.category(draws[8].index));
    }
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 6U) << "a pair twice";
    of_pairs.insert(order);
  }
  EXPECT_EQ(of_images.size(), 3U);
  EXPECT_EQ(of_pairs.size(), 3U);
}

TEST(Samplers, WhatDoesNotFitIsRefused) {
  const Dataset plain = made_of({4, 4, 4, 4}), categories = made_of_categories({{4, 4}, {4, 4}});
  const auto usage_error = [&](const char* text, std::int64_t n) {
    return message_of<UsageError>([&] { make_sampler(text, categories, n, 0); });
  };
  const auto input_error = [&](const char* text, std::int64_t n, const Dataset& data) {
    return message_of<InputError>([&] { make_sampler(text, data, n, 0); });
  };
  EXPECT_TRUE(holds(usage_error("category", 7), "a batch of 7 has no two halves"));
  EXPECT_TRUE(holds(usage_error("category:k=1", 8), "k=1 image a class gives no pairs"));
  EXPECT_TRUE(holds(usage_error("category:k=3", 8), "half a batch of 8 is no multiple of k=3"));
  EXPECT_TRUE(holds(usage_error("category:per_pair=0", 8), "per_pair=0"));
  EXPECT_TRUE(holds(usage_error("random_classes:k=2", 8), "no parameter 'k'; it has none"));
  EXPECT_TRUE(holds(usage_error("random_classes", 2), "a batch of 2"));
  EXPECT_TRUE(holds(usage_error("random", 0), "a batch of 0"));
  EXPECT_TRUE(holds(usage_error("categories", 8), "did you mean category?"));
  EXPECT_TRUE(holds(input_error("category", 8, plain), "class 'class0' has no category"));
  EXPECT_TRUE(holds(input_error("category", 8, made_of_categories({{4, 4}})),
                    "wants two categories, there is 1"));
  EXPECT_TRUE(holds(input_error("category", 8, made_of_categories({{4}, {1, 4}})),
                    "class 'class1' has 1 image"));
  EXPECT_TRUE(holds(input_error("random_classes", 8, made_of({4, 9, 4})),
                    "class 'class1' with its 9 images fills a batch of 8"));
  EXPECT_TRUE(holds(input_error("random_classes", 20, plain), "a batch of 20 out of 16 images"));
  EXPECT_TRUE(holds(input_error("random", 20, plain), "a batch of 20 out of 16 images"));
  EXPECT_TRUE(holds(input_error("category", 20, categories), "a batch of 20 out of 16 images"));
}

// They must be refused before the first epoch, not when its last batches are drawn.
TEST(Samplers, MoreBatchesThanDrawsAreKeyedForAreRefused) {
  const Dataset data = made_of_categories({{20, 20, 20}, {20, 20}});
  const auto refused = [&](const char* text, std::int64_t batches) {
    return message_of<UsageError>([&] { make_sampler(text, data, 64, 0, batches); });
  };
  for (const char* text : {"category", "random_classes", "category:k=4"}) {
    EXPECT_TRUE(holds(refused(text, 5'000'000), "give --batches 4194304 or fewer")) << text;
    const auto sampler = make_sampler(text, data, 64, 0, 4'194'304);
    EXPECT_LT(draws_of(*sampler, 0, 4'194'303).back().copy, kMostCopies);
  }
  EXPECT_TRUE(holds(refused("random", kMostCopies + 1), "give --batches 268435456 or fewer"));
  // k=64: a pass counts as 64 copies.
  const Dataset large = made_of({70, 70});
  const std::string many =
      message_of<UsageError>([&] { make_sampler("pk:k=64", large, 64, 0, std::int64_t{1} << 23); });
  EXPECT_TRUE(holds(many, "give 4194304 or fewer"));
}

// Random sets -------------------------------------------------------------------------------------

// A class in a sequence of draws, and the images of it that were drawn.
struct ClassRun {
  std::int64_t label = 0;
  std::vector<std::int64_t> images;
};
std::vector<ClassRun> runs_of(const Dataset& data, std::span<const Draw> draws, std::int64_t k) {
  std::vector<ClassRun> runs;
  for (const Draw& d : draws) {
    const std::int64_t label = data.label(d.index);
    const std::size_t whole = k > 0 ? static_cast<std::size_t>(k)
                                    : data.members()[static_cast<std::size_t>(label)].size();
    // If a class follows itself, a new run begins once the former is whole.
    if (runs.empty() || runs.back().label != label || runs.back().images.size() == whole) {
      runs.push_back({label, {}});
    }
    runs.back().images.push_back(d.index);
  }
  return runs;
}

// How often the images of a class come differs by at most one.
void expect_even(const Dataset& data, const ClassRun& run) {
  std::map<std::int64_t, std::size_t> times;
  for (const std::int64_t image : run.images) ++times[image];
  const std::size_t images = data.members()[static_cast<std::size_t>(run.label)].size();
  const std::size_t least = run.images.size() / images;
  EXPECT_EQ(times.size(), std::min(images, run.images.size()));
  for (const auto& [image, count] : times) {
    EXPECT_TRUE(count == least || count == least + 1) << image << " comes " << count << " times";
  }
}

// Classes come in random order, none twice before all have come; each is whole but the last, which
// may be cut.
void expect_filled(const Dataset& data, std::span<const Draw> draws, std::int64_t classes,
                   std::int64_t k) {
  const std::vector<ClassRun> runs = runs_of(data, draws, k);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    expect_even(data, runs[r]);
    const std::size_t images = data.members()[static_cast<std::size_t>(runs[r].label)].size();
    const std::size_t whole = k > 0 ? static_cast<std::size_t>(k) : images;
    if (r + 1 < runs.size()) {
      EXPECT_EQ(runs[r].images.size(), whole) << "only the last one is cut";
    }
    const auto round = static_cast<std::size_t>(classes);
    for (std::size_t other = r / round * round; other < r; ++other) {
      EXPECT_NE(runs[other].label, runs[r].label) << "a class again before all have come";
    }
    if (r >= round) {
      EXPECT_EQ(runs[r].label, runs[r % round].label) << "all begin again";
    }
  }
}

// The batches of an epoch, drawn from the last to the first.
using EpochOfDraws = std::vector<std::vector<Draw>>;
EpochOfDraws backwards(const Sampler& sampler, std::int64_t epoch) {
  EpochOfDraws batches(static_cast<std::size_t>(sampler.batches_per_epoch()));
  for (std::int64_t b = sampler.batches_per_epoch() - 1; b >= 0; --b) {
    batches[static_cast<std::size_t>(b)] = draws_of(sampler, epoch, b);
  }
  return batches;
}

// What must hold for every sampler: batches do not depend on the order in which they are drawn, no
// (image, copy) pair appears twice, and the parts of a batch make up the whole.
void expect_sound(const Sampler& sampler, const EpochOfDraws& batches, std::int64_t epoch,
                  std::int64_t parts) {
  std::set<std::pair<std::int64_t, std::int64_t>> appearances;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const std::vector<Draw> again = draws_of(sampler, epoch, static_cast<std::int64_t>(b));
    std::vector<std::int64_t> together;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto share = make_batch_share(sampler, part, parts);
      for (const Draw& d : draws_of(*share, epoch, static_cast<std::int64_t>(b))) {
        together.push_back(d.index);
      }
    }
    EXPECT_EQ(indices_of(again), indices_of(batches[b]));
    EXPECT_EQ(together, indices_of(batches[b])) << parts << " parts";
    for (const Draw& d : batches[b]) EXPECT_TRUE(appearances.emplace(d.index, d.copy).second);
  }
}

void expect_pk(const Dataset& data, const EpochOfDraws& batches, std::int64_t k) {
  const auto per_batch = static_cast<std::int64_t>(batches[0].size()) / k;
  const auto per_pass =
      static_cast<std::size_t>(static_cast<std::int64_t>(data.classes().size()) / per_batch);
  std::map<std::pair<std::int64_t, std::size_t>, std::set<std::int64_t>> rounds;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const std::size_t pass = b / per_pass;
    const std::vector<ClassRun> runs = runs_of(data, batches[b], k);
    EXPECT_EQ(static_cast<std::int64_t>(runs.size()), per_batch);
    std::set<std::int64_t> of_pass;
    for (std::size_t other = pass * per_pass; other < b; ++other) {
      for (const Draw& d : batches[other]) of_pass.insert(data.label(d.index));
    }
    for (const ClassRun& run : runs) {
      EXPECT_EQ(static_cast<std::int64_t>(run.images.size()), k);
      EXPECT_TRUE(of_pass.insert(run.label).second) << "a class twice in a pass";
      expect_even(data, run);
      const std::size_t images = data.members()[static_cast<std::size_t>(run.label)].size();
      if (static_cast<std::int64_t>(images) < k) continue;
      // A round of passes uses up a class's images: none may come again before the round is over.
      auto& seen = rounds[{run.label, pass / (images / static_cast<std::size_t>(k))}];
      for (const std::int64_t image : run.images) {
        EXPECT_TRUE(seen.insert(image).second) << "again before the round was over";
      }
    }
  }
}

// What each sampler promises of one epoch, on sets of all kinds. The other tests here fix numbers
// of batches, what differs between passes, epochs and seeds, and what is refused.
TEST(Samplers, DrawnSetsKeepWhatIsPromised) {
  CounterRandom random(random_seed(), 0, 0);
  for (int drawn = 0; drawn < 300; ++drawn) {
    std::vector<std::vector<int>> categories(static_cast<std::size_t>(2 + random.below(4)));
    int largest = 0;
    for (auto& sizes : categories) {
      sizes.resize(static_cast<std::size_t>(1 + random.below(12)));
      for (int& size : sizes) {
        size = static_cast<int>(2 + random.below(random.below(4) == 0 ? 30 : 7));
        largest = std::max(largest, size);
      }
    }
    const Dataset data = made_of_categories(categories);
    const auto classes = static_cast<std::int64_t>(data.classes().size());
    const std::int64_t k = 2 + random.below(std::min(6, largest - 1));
    const std::int64_t batch = k * (1 + random.below(classes));
    const std::int64_t asked = random.below(2) == 0 ? 0 : 1 + random.below(60);
    const auto seed = static_cast<std::uint64_t>(random.below(1000));
    const std::int64_t epoch = random.below(5);
    SCOPED_TRACE(testing::Message() << "case " << drawn << ": " << classes << " classes, k " << k
                                    << ", a batch of " << batch << ", " << asked << " asked for");
    const auto parts_of = [&](std::int64_t n) {
      std::int64_t parts = 1 + random.below(4);
      while (n % parts != 0) --parts;
      return parts;
    };

    const auto pk = make_sampler(fmt::format("pk:k={}", k), data, batch, seed, asked);
    const EpochOfDraws of_pk = backwards(*pk, epoch);
    expect_sound(*pk, of_pk, epoch, parts_of(batch));
    expect_pk(data, of_pk, k);

    const std::int64_t per_class = random.below(2) == 0 ? 0 : k;
    const std::int64_t step = std::max<std::int64_t>(2, per_class);
    if (data.size() < 2 * step) continue;
    const std::int64_t half = std::min(1 + random.below(8), data.size() / (2 * step)) * step;
    const auto category =
        make_sampler(fmt::format("category:per_pair={},k={}", 1 + random.below(3), per_class), data,
                     2 * half, seed, 1 + random.below(20));
    const EpochOfDraws of_category = backwards(*category, epoch);
    expect_sound(*category, of_category, epoch, parts_of(2 * half));
    for (const std::vector<Draw>& draws : of_category) {
      for (const std::int64_t first : {std::int64_t{0}, half}) {
        const auto of = std::span(draws).subspan(static_cast<std::size_t>(first),
                                                 static_cast<std::size_t>(half));
        const std::int64_t the_category = data.category(of[0].index);
        for (const Draw& d : of) EXPECT_EQ(data.category(d.index), the_category);
        const auto& sizes = categories[static_cast<std::size_t>(the_category)];
        expect_filled(data, of, static_cast<std::int64_t>(sizes.size()), per_class);
      }
    }

    if (data.size() > largest && data.size() >= 4) {
      const std::int64_t n = std::max<std::int64_t>(
          4, largest + 1 + random.below(std::max<std::int64_t>(1, data.size() - largest)));
      if (n <= data.size()) {
        const auto whole = make_sampler("random_classes", data, n, seed, asked);
        const EpochOfDraws of_whole = backwards(*whole, epoch);
        expect_sound(*whole, of_whole, epoch, parts_of(n));
        for (const auto& draws : of_whole) expect_filled(data, draws, classes, 0);
      }
    }

    const std::int64_t n = 1 + random.below(data.size());
    const auto any = make_sampler("random", data, n, seed, asked);
    const EpochOfDraws of_any = backwards(*any, epoch);
    expect_sound(*any, of_any, epoch, parts_of(n));
    const auto per_pass = static_cast<std::size_t>(data.size() / n);
    std::map<std::size_t, std::set<std::int64_t>> passes;
    for (std::size_t b = 0; b < of_any.size(); ++b) {
      for (const Draw& d : of_any[b]) {
        EXPECT_TRUE(passes[b / per_pass].insert(d.index).second) << "an image twice in a pass";
      }
    }
  }
}

TEST(SequentialSampler, AllInOrderLastShort) {
  const Dataset data = made_of({3, 4});
  const auto sampler = make_sequential(data, 3);
  EXPECT_EQ(sampler->batches_per_epoch(), 3);
  std::vector<Draw> draws(3);
  std::vector<std::int64_t> all;
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t count = sampler->batch(0, b, draws);
    EXPECT_EQ(count, b < 2 ? 3 : 1);
    for (std::int64_t i = 0; i < count; ++i)
      all.push_back(draws[static_cast<std::size_t>(i)].index);
  }
  EXPECT_EQ(all, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(SequentialSampler, PartsOfAShortBatchAreShort) {
  const Dataset data = made_of({3, 6});
  const auto whole = make_sequential(data, 6);  // the last batch: 6, 7, 8
  std::vector<std::int64_t> counts;
  for (std::int64_t part = 0; part < 3; ++part) {
    const auto share = make_batch_share(*whole, part, 3);
    std::vector<Draw> draws(2);
    const std::int64_t count = share->batch(0, 1, draws);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(draws[static_cast<std::size_t>(i)].index, 6 + 2 * part + i);
    }
    counts.push_back(count);
  }
  EXPECT_EQ(counts, (std::vector<std::int64_t>{2, 1, 0}));
}

}  // namespace
}  // namespace rk
