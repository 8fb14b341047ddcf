#include "data/sampler.h"

#include "engine/error.h"
#include "tests/data/temporary_folder.h"

#include <algorithm>
#include <map>
#include <set>

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
    classes.push_back({fmt::format("class{}", c), -1, 0});
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

TEST(PkSampler, DistinctClassesAndDistinctImages) {
  const Dataset data = made_of(std::vector<int>(20, 6));
  const auto sampler = make_sampler("pk:k=4", data, 32, 7);
  EXPECT_EQ(sampler->batches_per_epoch(), 120 / 32);
  for (std::int64_t b = 0; b < 50; ++b) {
    std::map<std::int64_t, int> per_class;
    std::set<std::int64_t> images;
    for (const Draw& d : draws_of(*sampler, 0, b)) {
      ++per_class[data.label(d.index)];
      images.insert(d.index);
    }
    EXPECT_EQ(per_class.size(), 8U);
    for (const auto& [label, count] : per_class) EXPECT_EQ(count, 4) << label;
    EXPECT_EQ(images.size(), 32U);
  }
}

TEST(PkSampler, EveryClassOnceAPass) {
  const Dataset data = made_of(std::vector<int>(20, 6));
  const auto sampler = make_sampler("pk:k=4", data, 16, 7);  // 4 classes a batch, 5 batches a pass
  for (std::int64_t pass = 0; pass < 4; ++pass) {
    std::set<std::int64_t> classes;
    for (std::int64_t b = 0; b < 5; ++b) {
      for (const Draw& d : draws_of(*sampler, 3, pass * 5 + b)) classes.insert(data.label(d.index));
    }
    EXPECT_EQ(classes.size(), 20U);
  }
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

TEST(PkSampler, ImagesOfAClassAreUsedUpBeforeOneComesAgain) {
  const Dataset data = made_of({12, 12});
  const auto sampler = make_sampler("pk:k=4", data, 8, 7);  // a batch is a pass
  for (std::int64_t round = 0; round < 3; ++round) {
    std::set<std::int64_t> images;
    for (std::int64_t b = 0; b < 3; ++b) {
      for (const Draw& d : draws_of(*sampler, 0, round * 3 + b)) images.insert(d.index);
    }
    EXPECT_EQ(images.size(), 24U);
  }
}

TEST(PkSampler, SmallClassesRepeatTheirImages) {
  const Dataset data = made_of({3, 8});
  const auto sampler = make_sampler("pk:k=8", data, 16, 7);
  for (std::int64_t b = 0; b < 10; ++b) {
    std::map<std::int64_t, int> times;
    std::set<std::pair<std::int64_t, std::int64_t>> appearances;
    for (const Draw& d : draws_of(*sampler, 0, b)) {
      ++times[d.index];
      appearances.emplace(d.index, d.copy);
    }
    EXPECT_EQ(times.size(), 11U);
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_TRUE(times[i] == 2 || times[i] == 3);
    EXPECT_EQ(appearances.size(), 16U) << "copies tell repetitions apart";
  }
}

TEST(PkSampler, CopiesAreDistinctOverAWholeEpoch) {
  const Dataset data = made_of({2, 3, 5});
  const auto sampler = make_sampler("pk:k=3", data, 9, 1, 40);
  std::set<std::pair<std::int64_t, std::int64_t>> appearances;
  for (std::int64_t b = 0; b < 40; ++b) {
    for (const Draw& d : draws_of(*sampler, 0, b)) {
      EXPECT_TRUE(appearances.emplace(d.index, d.copy).second);
    }
  }
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

TEST(PkSampler, EveryClassAndImageIsAsLikely) {
  const Dataset data = made_of(std::vector<int>(10, 5));
  const auto sampler = make_sampler("pk:k=2", data, 8, 3);
  std::vector<int> times(50);
  constexpr int kBatches = 5000;
  for (std::int64_t b = 0; b < kBatches; ++b) {
    for (const Draw& d : draws_of(*sampler, b / 100, b % 100))
      ++times[static_cast<std::size_t>(d.index)];
  }
  // 800 each; independent draws would scatter by sqrt(800) = 28, sampling without replacement by
  // less.
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
                    "the largest class has 5; lower k (--per-class) to 5"));
  EXPECT_TRUE(holds(input_error({4, 4, 4}, 16, "pk:k=4"),
                    "needs 4 classes, there are 3; lower the batch to 12"));
  EXPECT_TRUE(holds(input_error({4}, 8, "pk:k=4"), "needs 2 classes, there are 1"));
}

TEST(PkSampler, WrongUsage) {
  const Dataset data = made_of({4, 4, 4, 4});
  const auto usage_error = [&](std::int64_t n, const char* text, std::int64_t batches = 0) {
    return message_of<UsageError>([&] { make_sampler(text, data, n, 0, batches); });
  };
  EXPECT_TRUE(holds(usage_error(10, "pk:k=4"),
                    "a batch of 10 is no multiple of k=4 images a class; use 12"));
  EXPECT_TRUE(holds(usage_error(0, "pk:k=4"), "a batch of 0"));
  EXPECT_TRUE(holds(usage_error(8, "pk:k=1"), "give no pairs"));
  EXPECT_TRUE(holds(usage_error(8, "pk:k=four"), "k=four"));
  EXPECT_TRUE(holds(usage_error(8, "pk:p=4"), "no parameter 'p'"));
  EXPECT_TRUE(holds(usage_error(8, "kp"), "'kp' is no sampler; did you mean pk?"));
  EXPECT_TRUE(holds(usage_error(8, "pk", -1), "-1 batches"));
}

// Categories of classes of these sizes.
Dataset made_of_categories(const std::vector<std::vector<int>>& categories) {
  std::vector<DataItem> items;
  std::vector<DataClass> classes;
  std::vector<std::string> names;
  for (const std::vector<int>& sizes : categories) {
    for (const int size : sizes) {
      const auto label = static_cast<std::int64_t>(classes.size());
      classes.push_back(
          {fmt::format("class{}", label), static_cast<std::int64_t>(names.size()), 0});
      for (int i = 0; i < size; ++i) items.push_back({fmt::format("{}/{}", label, i), 0, label});
    }
    names.push_back(fmt::format("category{}", names.size()));
  }
  return Dataset("made", items, classes, names, std::make_shared<NoPictures>());
}

std::map<std::int64_t, int> images_by_class(const Dataset& data, std::span<const Draw> draws) {
  std::map<std::int64_t, int> count;
  for (const Draw& d : draws) ++count[data.label(d.index)];
  return count;
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

TEST(CategorySampler, ClassesAreWholeButForTheLastOfAHalf) {
  const Dataset data = made_of_categories({{3, 4, 5, 6}, {2, 2, 2, 2, 2}});
  const auto sampler = make_sampler("category", data, 16, 7);
  EXPECT_EQ(sampler->batches_per_epoch(), 10);
  std::set<std::int64_t> seen;
  for (std::int64_t b = 0; b < 10; ++b) {
    const std::vector<Draw> draws = draws_of(*sampler, 0, b);
    const std::vector<std::int64_t> indices = indices_of(draws);
    EXPECT_EQ(std::set<std::int64_t>(indices.begin(), indices.end()).size(), 16U);
    for (const std::size_t half : {std::size_t{0}, std::size_t{8}}) {
      int cut = 0;
      for (const auto& [label, images] : images_by_class(data, std::span(draws).subspan(half, 8))) {
        seen.insert(label);
        if (images < static_cast<int>(data.members()[static_cast<std::size_t>(label)].size())) {
          ++cut;
          EXPECT_EQ(label, data.label(draws[half + 7].index)) << "the last one is cut";
        }
      }
      EXPECT_LE(cut, 1);
    }
  }
  EXPECT_EQ(seen.size(), 9U);
}

TEST(CategorySampler, KImagesAClassAndCopiesWhereThereAreFewer) {
  const Dataset data = made_of_categories({{2, 8, 8}, {5, 3}});
  const auto sampler = make_sampler("category:k=4,per_pair=2", data, 16, 7);
  for (std::int64_t b = 0; b < 20; ++b) {
    const std::vector<Draw> draws = draws_of(*sampler, 0, b);
    for (const auto& [label, images] : images_by_class(data, draws)) EXPECT_EQ(images, 4) << label;
    std::set<std::pair<std::int64_t, std::int64_t>> appearances;
    for (const Draw& d : draws) appearances.emplace(d.index, d.copy);
    EXPECT_EQ(appearances.size(), 16U);
  }
}

TEST(CategorySampler, ASmallCategoryBeginsAgain) {
  const Dataset data = made_of_categories({{2, 2}, {20, 20}});
  const auto sampler = make_sampler("category:per_pair=1", data, 16, 7);
  const std::vector<Draw> draws = draws_of(*sampler, 0, 0);
  std::map<std::int64_t, int> times;
  for (std::size_t i = 0; i < 8; ++i) ++times[draws[i].index];
  EXPECT_EQ(times.size(), 4U);
  for (const auto& [index, count] : times) EXPECT_EQ(count, 2) << index;
}

TEST(RandomClassesSampler, WholeClassesOfTheWholeSet) {
  const Dataset data = made_of({3, 4, 5, 2, 6, 7, 3, 2});
  const auto sampler = make_sampler("random_classes", data, 12, 7);
  EXPECT_EQ(sampler->batches_per_epoch(), 32 / 12);
  std::set<std::int64_t> seen;
  for (std::int64_t b = 0; b < 20; ++b) {
    const std::vector<Draw> draws = draws_of(*sampler, 0, b);
    int cut = 0;
    for (const auto& [label, images] : images_by_class(data, draws)) {
      seen.insert(label);
      if (images < static_cast<int>(data.members()[static_cast<std::size_t>(label)].size())) ++cut;
    }
    EXPECT_LE(cut, 1);
  }
  EXPECT_EQ(seen.size(), 8U);
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

// Resuming asks for any batch in any order.
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
  EXPECT_TRUE(holds(input_error("random_classes", 20, plain), "there are 16 images"));
  EXPECT_TRUE(holds(input_error("random", 20, plain), "there are 16 images"));
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

}  // namespace
}  // namespace rk
