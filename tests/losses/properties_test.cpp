// Properties of every registered loss, in every setting its reference lists: how the gradient
// follows a change of the batch, and what a caller may rely on.
#include "engine/base/error.h"
#include "losses/auc/auc.h"
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"

#include <numeric>

namespace rk {
namespace {

class LossProperties : public LossTest {
 protected:
  // All rows the same vector, or each along an axis.
  void expect_finite(std::int64_t rows, std::int64_t classes, bool same) {
    SCOPED_TRACE(fmt::format("{} rows, {} classes, {}", rows, classes, same ? "same" : "axes"));
    made_up::Wanted wanted;
    wanted.rows = rows;
    wanted.classes = classes;
    LossData<double> data = made_up::data(kind_, wanted, 7);
    const auto dim = static_cast<std::size_t>(data.dim);
    for (std::size_t i = 0; i < data.embeddings.size(); ++i) {
      data.embeddings[i] = same ? data.embeddings[i % dim] : i % dim == i / dim % dim ? 1 : 0;
    }
    for (double& s : data.scores) s = same ? 0.25 : 0;
    const reference::Value value = expected(data);
    const auto check = [&](const auto& result) {
      EXPECT_TRUE(std::isfinite(result.loss));
      EXPECT_EQ(result.valid_queries, value.valid);
      for (const auto g : result.grad) EXPECT_TRUE(std::isfinite(g));
      if (result.valid_queries == 0) {
        EXPECT_EQ(result.loss, 0);
        for (const auto g : result.grad) EXPECT_EQ(g, 0);
      }
    };
    check(run(data));
    check(run(made_up::as_float(data)));
  }

  // How far gradients may differ, relatively, between two ways of adding up the same products. A
  // similarity moves by some 1e-15, and the slope of a distance d between two rows with it by 1e-15
  // / d^2 (at most 8e-15 / d^2 in 100,000 batches).
  static double rounding(const LossData<double>& data) {
    std::vector<double> rows = data.embeddings;
    rows.insert(rows.end(), data.memory_embeddings.begin(), data.memory_embeddings.end());
    const auto dim = static_cast<std::size_t>(data.dim);
    double closest = 1;  // squared distance
    for (std::size_t i = 0; i < data.embeddings.size(); i += dim) {
      for (std::size_t j = i + dim; j < rows.size(); j += dim) {
        double square = 0;
        for (std::size_t d = 0; d < dim; ++d) {
          square += (rows[i + d] - rows[j + d]) * (rows[i + d] - rows[j + d]);
        }
        closest = std::min(closest, square);
      }
    }
    return 1e-8 + 2e-14 / std::max(closest, 1e-15);
  }
};

TEST_P(LossProperties, PermutingTheBatchPermutesTheGradient) {
  int tied = 0;
  for (const std::uint64_t seed : random_seeds(20)) {
    const LossData<double> data = made_up(seed);
    std::vector<std::size_t> order(static_cast<std::size_t>(data.rows));
    std::iota(order.begin(), order.end(), std::size_t{0});
    CounterRandom random(seed, 4, 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
    // Row i of the result is row order[i]; `back` inverts the permutation.
    const auto permuted_rows = [&](const auto& rows, bool back) {
      auto out = rows;
      const std::size_t width = rows.size() / order.size();
      for (std::size_t at = 0; at < rows.size(); ++at) {
        const std::size_t other = order[at / width] * width + at % width;
        (back ? out[other] : out[at]) = back ? rows[at] : rows[other];
      }
      return out;
    };
    LossData<double> permuted = data;
    permuted.embeddings = permuted_rows(data.embeddings, false);
    permuted.labels = permuted_rows(data.labels, false);
    permuted.image_ids = permuted_rows(data.image_ids, false);
    permuted.scores = permuted_rows(data.scores, false);
    permuted.targets = permuted_rows(data.targets, false);
    const LossResult<double> before = run(data);
    const LossResult<double> after = run(permuted);
    ASSERT_EQ(after.valid_queries, before.valid_queries);
    // Sums over the batch in another order; the roots of triplet losses turn 1e-16 into 1e-12.
    ASSERT_NEAR(after.loss, before.loss, 1e-10);
    const double off = relative(permuted_rows(after.grad, true), before.grad);
    // Two scores that float32 rounds to one rank as their rows lie: one batch in ten thousand.
    if (kind_ == LossKind::kScores && off > 1e-8) {
      ASSERT_LE(++tied, 1) << "seed " << seed;
      continue;
    }
    ASSERT_LT(off, rounding(data)) << "seed " << seed;
    ASSERT_LT(relative(after.grad_proxies, before.grad_proxies), 1e-9) << "seed " << seed;
  }
}

TEST_P(LossProperties, RotatingEverythingRotatesTheGradient) {
  if (kind_ == LossKind::kScores) GTEST_SKIP() << "scores have no direction to rotate";
  for (const std::uint64_t seed : random_seeds(20)) {
    const LossData<double> data = made_up(seed);
    const auto dim = static_cast<std::size_t>(data.dim);
    CounterRandom random(seed, 5, 0);
    std::vector<double> axis(dim);
    for (double& x : axis) x = random.normal();
    double square = 0;
    for (const double x : axis) square += x * x;
    // The reflection I - 2 a a^T / a.a is orthogonal, which is all that is needed.
    const auto reflect = [&](std::vector<double> rows) {
      for (std::size_t at = 0; at < rows.size(); at += dim) {
        double along = 0;
        for (std::size_t d = 0; d < dim; ++d) along += rows[at + d] * axis[d];
        for (std::size_t d = 0; d < dim; ++d) rows[at + d] -= 2 * along / square * axis[d];
      }
      return rows;
    };
    LossData<double> turned = data;
    turned.embeddings = reflect(data.embeddings);
    turned.memory_embeddings = reflect(data.memory_embeddings);
    turned.proxies = reflect(data.proxies);
    const LossResult<double> before = run(data);
    const LossResult<double> after = run(turned);
    // Random scores lie further apart than they move: no rank changes.
    ASSERT_NEAR(after.loss, before.loss, 1e-10);
    ASSERT_LT(relative(after.grad, reflect(before.grad)), rounding(data)) << "seed " << seed;
    ASSERT_LT(relative(after.grad_proxies, reflect(before.grad_proxies)), 1e-9) << "seed " << seed;
  }
}

// One more item, of a class of its own, further from every item than any two of them: at similarity
// -c where theirs are at least 2 c^2 - 1. It is no valid query and ranks after everything, so
// losses that look only at a query's positives and what ranks before them do not change: AP-like
// losses, pnp, recall, hardest pairs, and pairs beyond a margin. It does count in losses of all
// negative pairs (K of them before; N rows, M memory items):
//   histogram  h- is divided by K + 2 N + M pairs instead of K, and nothing is added below the
//              positives:                         loss' = loss K / (K + 2 N + M)
//   auc_ba     F falls by the far pairs' sigmoid at t = -1, where T is 1:
//                  loss' = 1 - share (1 - loss) - (1 - share) sg,  share = K / (K + 2 N + M)
// rambo_* divide ranks by the gallery's size, which sets the step of their gradient: only the value
// stays.
TEST_P(LossProperties, AFarItemOfNoClassChangesTheLossAsTheFormulaSays) {
  const std::string& name = spec_.entry->name;
  if (kind_ == LossKind::kProxies) GTEST_SKIP() << "a class of its own is a proxy of its own";
  const auto& counting = reference::reference_of(spec_).counts_far_items;
  if (const auto why = counting.find(GetParam()); why != counting.end()) {
    GTEST_SKIP() << why->second;
  }
  // With compat=official its largest k is at most N.
  const std::int64_t fewest = name == "recall_at_k" ? 16 : 0;
  constexpr double kFar = 0.8;
  const double gap = 2 * kFar * kFar - 1 + kFar;
  const bool has_tau = spec_.values.text().contains("tau");
  // Such an item adds a sigmoid of the gap to a rank or a curve; losses change by at most 5 times
  // that (pnp_iu's slope is log(1+n), n < 50), those of curves at each of 21 thresholds by at most
  // (e^2.25 - 1) / 2 times that, as T changes from one to the next.
  const bool curves = name == "auc_ba";
  const double steepness = has_tau  ? 1 / spec_.values.number("tau")
                           : curves ? auc_steepness(spec_.values.number("ds"))
                                    : 0;
  const double added = steepness > 0 ? (curves ? 90 : 5) * std::exp(-steepness * gap) : 0;
  int tried = 0;
  for (const std::uint64_t seed : random_seeds(80)) {
    LossData<double> data = made_up(seed);
    if (data.rows < fewest) continue;
    LossData<double> more = data;
    ++more.rows;
    if (kind_ == LossKind::kScores) {
      for (std::int64_t c = 0; c < data.classes; ++c) {
        more.scores.push_back(-10);
        more.targets.push_back(0);
      }
      ASSERT_EQ(run(more).loss, run(data).loss) << "seed " << seed;
      ++tried;
      continue;
    }
    // Adds a dimension in which all old items point one way and the new item the other.
    const auto lift = [&](const std::vector<double>& rows) {
      std::vector<double> out;
      for (std::size_t at = 0; at < rows.size(); ++at) {
        out.push_back(std::sqrt(1 - kFar * kFar) * rows[at]);
        if ((at + 1) % static_cast<std::size_t>(data.dim) == 0) out.push_back(kFar);
      }
      return out;
    };
    data.embeddings = lift(data.embeddings);
    data.memory_embeddings = lift(data.memory_embeddings);
    ++data.dim;
    std::int64_t negative_pairs = 0;
    bool all_have_negatives = true;
    for (const reference::Query& query : reference::queries(data)) {
      const auto negatives = static_cast<std::int64_t>(query.negatives().size());
      negative_pairs += negatives;
      all_have_negatives = all_have_negatives && negatives > 0;
    }
    if (!all_have_negatives) continue;  // the new item would make queries valid
    ++tried;
    more = data;
    ++more.rows;
    more.embeddings.resize(more.embeddings.size() + static_cast<std::size_t>(data.dim), 0.0);
    more.embeddings.back() = -1;
    more.labels.push_back(5);
    if (!more.image_ids.empty()) more.image_ids.push_back(1 << 20);

    const LossResult<double> before = run(data);
    const LossResult<double> after = run(more);
    ASSERT_EQ(after.valid_queries, before.valid_queries);
    double expected_loss = before.loss;
    double scale = 1;
    double towards_new = 0;  // what a row gains along the new item's embedding
    const auto new_pairs = static_cast<double>(2 * data.rows + data.memory);
    const double share =
        static_cast<double>(negative_pairs) / (static_cast<double>(negative_pairs) + new_pairs);
    if (before.valid_queries > 0 && name == "histogram") {
      scale = share;
      expected_loss = share * before.loss;
    } else if (before.valid_queries > 0 && name == "auc_ba") {
      const double r = auc_steepness(spec_.values.number("ds"));
      const double lowest = 1 / (1 + std::exp(-r * (1 - kFar)));
      scale = share;
      expected_loss = 1 - (share * (1 - before.loss) + (1 - share) * lowest);
      // Both ordered pairs of a row and the new item still move the sigmoid at t = -1.
      towards_new =
          -2 * r * lowest * (1 - lowest) / (static_cast<double>(negative_pairs) + new_pairs);
    }
    ASSERT_NEAR(after.loss, expected_loss, 1e-10 + added) << "seed " << seed;
    if (name.starts_with("rambo")) continue;
    std::vector<double> old_rows(after.grad.begin(),
                                 after.grad.end() - static_cast<std::ptrdiff_t>(data.dim));
    std::vector<double> expected_rows = before.grad;
    for (double& g : expected_rows) g *= scale;
    for (std::size_t at = static_cast<std::size_t>(data.dim) - 1; at < expected_rows.size();
         at += static_cast<std::size_t>(data.dim)) {
      expected_rows[at] -= towards_new;  // the new embedding is -1 there, 0 elsewhere
    }
    // The gradient changes by the slope of what is added, in several rows.
    const double tolerance = 1e-9 * norm(expected_rows) + 10 * steepness * added + 1e-10;
    ASSERT_LT(distance(old_rows, expected_rows), tolerance) << "seed " << seed;
  }
  EXPECT_GT(tried, 5);
}

// Batches in which every similarity is a tie, and those in which each is exactly 0 or 1.
TEST_P(LossProperties, SmallAndDegenerateBatchesGiveFiniteNumbers) {
  for (const std::int64_t rows : {1, 2, 3, 17}) {
    for (const std::int64_t classes : {std::int64_t{1}, rows}) {
      expect_finite(rows, classes, true);
      expect_finite(rows, classes, false);
    }
  }
  expect_finite(17, 5, false);
}

TEST_P(LossProperties, NothingIsWrittenOutsideTheGradient) {
  made_up::Wanted wanted;
  wanted.rows = 19;  // no multiple of anything
  wanted.dim = 5;
  wanted.memory = kind_ == LossKind::kEmbeddings ? 3 : 0;
  const LossData<float> data = made_up::as_float(made_up::data(kind_, wanted, 11));
  constexpr std::size_t kGuard = 64;
  constexpr float kSentinel = 12345.5F;
  const auto loss = make_loss<float>(spec_);
  loss->allocate(context_, data.shape());
  const auto guarded = [&](std::int64_t elements) {
    std::vector<float> out(static_cast<std::size_t>(elements) + 2 * kGuard, kSentinel);
    std::fill(out.begin() + kGuard, out.end() - kGuard, std::numeric_limits<float>::quiet_NaN());
    return out;
  };
  std::vector<float> grad = guarded(data.grad_elements(kind_));
  std::vector<float> grad_proxies = guarded(data.proxy_elements(kind_));
  LossOutput<float> output;
  output.grad = grad.data() + kGuard;
  output.grad_proxies = grad_proxies.data() + kGuard;
  loss->run(context_, data.input(), output);
  for (const std::vector<float>* values : {&grad, &grad_proxies}) {
    for (std::size_t i = 0; i < values->size(); ++i) {
      const float value = (*values)[i];
      if (i < kGuard || i >= values->size() - kGuard) {
        ASSERT_EQ(value, kSentinel) << "element " << i;
      } else {
        ASSERT_TRUE(std::isfinite(value)) << "element " << i - kGuard;
      }
    }
  }
}

TEST_P(LossProperties, TheSameBatchGivesTheSameBitsWhateverTheThreads) {
  const LossData<double> data = made_up(21);
  const LossResult<double> first = run(data);
  for (const int threads : {2, 3}) {
    const Context context(threads);
    LossFunction<double> function(context, spec_, data.shape(), false);
    (void)function(data);
    const LossResult<double> again =
        function(data);  // over what the first call left in the buffers
    EXPECT_EQ(again.loss, first.loss);
    EXPECT_EQ(again.grad, first.grad);
    EXPECT_EQ(again.grad_proxies, first.grad_proxies);
  }
}

TEST_P(LossProperties, ASmallerBatchThanPlannedIsFine) {
  const LossData<double> data = made_up(22);
  LossShape larger = data.shape();
  larger.rows += 9;
  larger.memory += 4;
  larger.classes += 3;
  LossFunction<double> function(context_, spec_, larger, false);
  const LossResult<double> result = function(data);
  const LossResult<double> expected = run(data);
  EXPECT_EQ(result.loss, expected.loss);
  EXPECT_EQ(result.grad, expected.grad);
  EXPECT_EQ(result.grad_proxies, expected.grad_proxies);
}

// As in a run, whose batches go through one loss.
TEST_P(LossProperties, ABatchLeavesNothingBehindForTheNext) {
  made_up::Wanted large{.rows = 20, .memory = takes_memory(kind_) ? 6 : 0, .classes = 6};
  made_up::Wanted small = large;
  small.rows = 5;
  LossFunction<double> function(context_, spec_, made_up::data(kind_, large, 0).shape(), false);
  for (const std::uint64_t seed : random_seeds(5)) {
    (void)function(made_up::data(kind_, large, seed));
    const LossData<double> data = made_up::data(kind_, small, seed);
    const LossResult<double> result = function(data);
    const LossResult<double> expected = run(data);
    EXPECT_EQ(result.valid_queries, expected.valid_queries) << seed;
    EXPECT_EQ(result.loss, expected.loss) << seed;
    EXPECT_EQ(result.grad, expected.grad) << seed;
    EXPECT_EQ(result.grad_proxies, expected.grad_proxies) << seed;
  }
}

// As a trainer that looks at a loss one step later: the host's arrays are read by prepare() alone,
// and the values of two batches may be on their way.
TEST_P(LossProperties, ABatchIsPreparedBeforeTheLastOneIsTaken) {
  const made_up::Wanted wanted{
      .rows = 12, .memory = takes_memory(kind_) ? 6 : 0, .classes = 6, .image_ids = true};
  const LossData<double> batches[] = {made_up::data(kind_, wanted, 31),
                                      made_up::data(kind_, wanted, 32)};
  auto loss = make_loss<double>(spec_.text());
  loss->allocate(context_, batches[0].shape());
  std::vector<double> grad[2], grad_proxies[2];
  for (int i = 0; i < 2; ++i) {
    LossData<double> data = batches[i];
    grad[i].resize(std::max(data.embeddings.size(), data.scores.size()));
    grad_proxies[i].resize(data.proxies.size());
    loss->prepare(context_, data.input());
    std::ranges::fill(data.labels, -7);
    std::ranges::fill(data.image_ids, -7);
    std::ranges::fill(data.memory_labels, -7);
    std::ranges::fill(data.memory_image_ids, -7);
    std::ranges::fill(data.targets, std::uint8_t{1});
    loss->launch(context_, data.input(), {grad[i].data(), grad_proxies[i].data()});
    loss->fetch(context_);
  }
  for (int i = 0; i < 2; ++i) {
    const LossResult<double> expected = run(batches[i]);
    const LossValue value = loss->take();
    EXPECT_EQ(value.loss, expected.loss) << i;
    EXPECT_EQ(value.valid_queries, expected.valid_queries) << i;
    EXPECT_EQ(grad[i], expected.grad) << i;
    EXPECT_EQ(grad_proxies[i], expected.grad_proxies) << i;
  }
}

// A shape with as many scores, but of more rows or classes than are reserved, is refused.
TEST(RamboScores, RefusesRowsAndClassesBeyondThoseReserved) {
  const Context context(1);
  for (const made_up::Wanted& wanted :
       {made_up::Wanted{.rows = 50, .classes = 2}, made_up::Wanted{.rows = 2, .classes = 50}}) {
    auto loss = make_loss<double>("rambo_map");
    loss->allocate(context, {.rows = 10, .classes = 10});
    const LossData<double> data = made_up::data(LossKind::kScores, wanted, 1);
    EXPECT_THROW(loss->prepare(context, data.input()), std::exception);
  }
}

TEST_P(LossProperties, NanIsAnErrorThatNamesTheRow) {
  made_up::Wanted wanted;
  wanted.rows = 9;
  wanted.dim = 4;
  wanted.classes = 9;
  wanted.memory = takes_memory(kind_) ? 9 : 0;
  const LossData<double> good = made_up::data(kind_, wanted, 3);
  LossData<double> data = good;
  const std::pair<const char*, std::vector<double>*> inputs[] = {
      {"embeddings", &data.embeddings},
      {"memory_embeddings", &data.memory_embeddings},
      {"proxies", &data.proxies},
      {"scores", &data.scores}};
  int tried = 0;
  for (const auto& [name, values] : inputs) {
    if (values->empty()) continue;
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      const std::size_t width = values->size() / 9;
      (*values)[6 * width + 1] = bad;
      ++tried;
      try {
        (void)run(data);
        ADD_FAILURE() << "no error about " << name;
      } catch (const InputError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(std::string(name) + ": row 6 "))
            << error.what();
      }
      data = good;
    }
  }
  EXPECT_EQ(tried, kind_ == LossKind::kScores ? 2 : 4);
}

// The kinds in the registry: memory columns change a loss that takes them, and a loss that is not
// given scores keeps a matrix of them, which grows with the square of the batch.
TEST_P(LossProperties, MemoryIsTakenAndAMatrixKeptAsTheKindSays) {
  if (takes_memory(kind_)) {
    // The memory adds items like those of the batch: positives and negatives, near and far.
    const LossData<double> data = made_up::data(kind_, {.rows = 14, .memory = 9}, 2);
    LossData<double> without = data;
    without.memory = 0;
    without.memory_embeddings.clear();
    without.memory_labels.clear();
    EXPECT_NE(run(data).loss, run(without).loss);
  }
  // Class columns grow with the batch, as proxies do where classes have a fixed size.
  const auto allocated = [&](std::int64_t n) {
    const auto loss = make_loss<float>(spec_);
    loss->allocate(context_, {.rows = n, .memory = 0, .dim = 8, .classes = n / 4});
    return static_cast<double>(loss->bytes());
  };
  if (kind_ != LossKind::kScores) {
    // What grows linearly, such as the rows' histograms, is left out.
    const double columns = kind_ == LossKind::kProxies ? 256 : 1024;
    EXPECT_GT(allocated(4096) - 4 * allocated(1024), 11 * sizeof(float) * 1024 * columns);
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, LossProperties, testing::ValuesIn(all_specs()), test_name);

}  // namespace
}  // namespace rk
