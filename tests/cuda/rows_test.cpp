// Every row kernel in float, on a GPU and on the CPU, against SerialTeam in double on the same
// scores. The comparison on the CPU needs no GPU: it shows that the cases, their reference and the
// tolerances hold for arithmetic in float.
#include "kernels/cuda/rows.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "kernels/launch.h"
#include "kernels/rows/wilcoxon_hardest_pairs.h"
#include "losses/auc/auc_gradient.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/rows_problem.h"
#include "tests/kernel_cases/row_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>

namespace rk {
namespace {

constexpr int kRows = RowsProblem::kRows;
constexpr int kColumns = RowsProblem::kColumns;
constexpr std::int64_t kStride = RowsProblem::kStride;
constexpr float kUntouched = 12345;

const RowsProblem& problem() {
  static const RowsProblem made;
  return made;
}

// What a kernel wrote for the batch.
template <class S> struct Written {
  std::vector<S> stats;   // [rows, width]
  std::vector<S> grads;   // [rows, stride]
  std::vector<S> losses;  // [rows]
};

// For 9 thresholds of steepness 7.
template <class S> AucGradientTable<S> auc_table(const S* slopes) {
  const Context context(1);
  AucGradientTable<S> table;
  table.build(context, 7, 0.25, 9);
  table.fill(context, slopes);
  return table;
}

// How many coefficients a table holds for each kind of pair: the negative pairs' follow the
// positive pairs'.
template <class S> std::ptrdiff_t half_of(const AucGradient<S>& table) {
  return table.negative - table.positive;
}

// Numbers that parameters point to, in place of what the pass over all rows computes for the second
// kernel of a row. auc_ba's table follows them.
template <class S> std::vector<S> slopes() {
  std::vector<S> out(2 * kRows);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<S>(std::sin(static_cast<float>(i)));
  }
  const auto table = auc_table(out.data());
  const AucGradient<S> auc = table.gradient();
  out.insert(out.end(), auc.positive, auc.negative + half_of(auc));
  return out;
}

// Points into the numbers of slopes().
template <class S> BetweenPasses<S> between_passes(const S* slopes) {
  const std::vector<S> zeros(18);  // the table's layout and length do not depend on them
  const auto table = auc_table(zeros.data());
  BetweenPasses<S> out{slopes, table.gradient()};
  out.auc.positive = slopes + 2 * kRows;
  out.auc.negative = out.auc.positive + half_of(table.gradient());
  return out;
}

template <class Row, class S> Written<S> on_cpu(const typename Row::Params& params, int width) {
  Written<S> out;
  out.stats.assign(std::size_t{kRows} * static_cast<std::size_t>(width), S(0));
  out.grads.assign(problem().scores.begin(), problem().scores.end());
  out.losses.assign(kRows, S(0));
  const std::int64_t bytes = scratch_of<Row>(params, kColumns, kColumns);
  Buffer scratch(static_cast<std::size_t>(std::max<std::int64_t>(1, bytes)));
  void* memory = scratch.data();
  expect(memory != nullptr, "[rows] expected memory, got none");
  const SerialTeam team;
  for (int i = 0; i < kRows; ++i) {
    S* place = out.grads.data() + i * kStride;
    if (problem().counted[static_cast<std::size_t>(i)] == 0) {
      std::fill_n(place, pad(kColumns), S(0));
      continue;
    }
    const GalleryRow<S> in = problem().row<S>(i, place);
    if constexpr (requires { &Row::template measure<SerialTeam>; }) {
      Row::measure(team, params, in, out.stats.data() + std::int64_t{i} * width, memory);
    }
    Row::row(team, params, in, place, &out.losses[static_cast<std::size_t>(i)], memory);
  }
  return out;
}

// The scores; behind each row kUntouched, which no kernel may change.
DeviceBuffer scores_on_gpu(const RowsProblem& p = problem()) {
  std::vector<float> filled = p.scores;
  for (int i = 0; i < kRows; ++i) {
    std::fill(filled.begin() + i * kStride + pad(kColumns), filled.begin() + (i + 1) * kStride,
              kUntouched);
  }
  return DeviceBuffer::copy_of(filled);
}

template <class Row>
Written<float> on_gpu(const typename Row::Params& params, int width,
                      const RowsProblem& p = problem()) {
  const auto scores = scores_on_gpu(p);
  const auto classes = DeviceBuffer::copy_of(p.classes);
  const auto members = DeviceBuffer::copy_of(p.members);
  const auto first_members = DeviceBuffer::copy_of(p.first_members);
  const auto member_counts = DeviceBuffer::copy_of(p.member_counts);
  const auto image_ids = DeviceBuffer::copy_of(p.image_ids);
  const auto counted = DeviceBuffer::copy_of(p.counted);
  const auto weight = DeviceBuffer::copy_of(std::vector<float>{RowsProblem::kWeight});
  const auto losses = DeviceBuffer::copy_of(std::vector<float>(kRows, std::nanf("")));
  const auto stats = DeviceBuffer::copy_of(
      std::vector<float>(std::size_t{kRows} * static_cast<std::size_t>(width), std::nanf("")));
  const DeviceBuffer device_params =
      DeviceBuffer::copy_of(std::vector<typename Row::Params>{params});

  RowScratch scratch;
  GalleryRows<Row>::plan(params, kRows, kColumns, &scratch);
  EXPECT_GT(scratch.blocks, 0);
  const auto memory = DeviceBuffer::copy_of(std::vector<float>(
      static_cast<std::size_t>(scratch.blocks * scratch.global_bytes) / sizeof(float),
      std::nanf("")));
  scratch.global = memory.as<std::byte>();

  RowBatch<float> batch;
  batch.scores = scores.as<float>();
  batch.stride = kStride;
  batch.rows = kRows;
  batch.columns = kColumns;
  batch.classes = classes.as<std::int32_t>();
  batch.members = members.as<std::int32_t>();
  batch.first_members = first_members.as<std::int32_t>();
  batch.member_counts = member_counts.as<std::int32_t>();
  batch.image_ids = image_ids.as<std::int64_t>();
  batch.counted = counted.as<std::uint8_t>();
  batch.weight = weight.as<float>();
  batch.losses = losses.as<float>();
  const auto* where = device_params.as<typename Row::Params>();
  if (width > 0) {
    GalleryRows<Row>::measure(batch, where, stats.as<float>(), width, scratch, nullptr);
  }
  GalleryRows<Row>::run(batch, where, scratch, nullptr);
  return {stats.values<float>(), scores.values<float>(), losses.values<float>()};
}

template <class S> ProxyBatch<S> proxy_batch(S* scores, S* losses) {
  return {.scores = scores,
          .stride = kStride,
          .rows = kRows,
          .columns = kColumns,
          .weight = static_cast<S>(RowsProblem::kWeight),
          .losses = losses};
}

template <class Row, class S> Written<S> proxies_on_cpu(const typename Row::Params& params) {
  Written<S> out;
  out.grads.assign(problem().scores.begin(), problem().scores.end());
  out.losses.assign(kRows, S(0));
  const ProxyItems<S, Row> items(kRows, kColumns);
  ProxyBatch<S> batch = proxy_batch(out.grads.data(), out.losses.data());
  batch.labels = items.labels.data();
  batch.shares = items.shares.data();
  const Buffer memory(static_cast<std::size_t>(Row::scratch(kColumns)));
  for (int i = 0; i < kRows; ++i) Row::row(SerialTeam(), params, batch, i, memory.data());
  return out;
}

template <class Row> Written<float> proxies_on_gpu(const typename Row::Params& params) {
  RowScratch scratch;
  ProxyRows<Row>::plan(kRows, kColumns, &scratch);
  const auto global = DeviceBuffer::of<std::byte>(scratch.blocks * scratch.global_bytes);
  scratch.global = global.as<std::byte>();
  const auto scores = scores_on_gpu();
  const auto losses = DeviceBuffer::copy_of(std::vector<float>(kRows, std::nanf("")));
  const ProxyItems<float, Row> items(kRows, kColumns);
  const DeviceBuffer labels = DeviceBuffer::copy_of(items.labels);
  const DeviceBuffer shares = DeviceBuffer::copy_of(items.shares);
  ProxyBatch<float> batch = proxy_batch(scores.as<float>(), losses.as<float>());
  batch.labels = labels.as<std::int64_t>();
  batch.shares = shares.as<float>();
  ProxyRows<Row>::run(batch, params, scratch, nullptr);
  return {{}, scores.values<float>(), losses.values<float>()};
}

// Arithmetic in float on scores of up to 1: a score over a temperature of 0.05 is off by 1e-6, and
// so is its sigmoid; sums have up to 400 such terms. Relative to the row's largest value.
// columns: what a row writes of its gradient.
void expect_close(const Written<float>& got, const Written<double>& expected, int width,
                  int columns) {
  const auto row_bound = [&](const double* from, std::int64_t count) {
    double largest = 0;
    for (std::int64_t j = 0; j < count; ++j) largest = std::max(largest, std::abs(from[j]));
    return 1e-4 * largest + 1e-7;
  };
  for (int i = 0; i < kRows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double loss = expected.losses[at];
    ASSERT_NEAR(got.losses[at], loss, 2e-5 * std::abs(loss) + 2e-6) << "row " << i;
    const double* grad = expected.grads.data() + i * kStride;
    const double bound = row_bound(grad, kColumns);
    for (int j = 0; j < columns; ++j) {
      ASSERT_NEAR(got.grads[static_cast<std::size_t>(i * kStride + j)], grad[j], bound)
          << "row " << i << " column " << j;
    }
    const double* stats = expected.stats.data() + std::int64_t{i} * width;
    const double stats_bound = row_bound(stats, width);
    for (int k = 0; k < width; ++k) {
      ASSERT_NEAR(got.stats[static_cast<std::size_t>(i * width + k)], stats[k], stats_bound)
          << "row " << i << " number " << k;
    }
  }
}

struct RowCase {
  std::string name;
  std::function<Written<double>()> exact;
  std::function<Written<float>()> cpu;
  std::function<Written<float>()> gpu;
  int width = 0;
  int columns = kColumns;
};

template <template <class> class Row, class Make>
RowCase gallery_case(const char* name, const Make& make) {
  const int width = row_stats<Row<float>>(make(BetweenPasses<float>()));
  const auto on_cpu_in = [=]<class S>(S) {
    const auto values = slopes<S>();
    return on_cpu<Row<S>, S>(make(between_passes(values.data())), width);
  };
  const auto gpu = [=] {
    const auto values = DeviceBuffer::copy_of(slopes<float>());
    return on_gpu<Row<float>>(make(between_passes(values.template as<const float>())), width);
  };
  return {name,         [=] { return on_cpu_in(0.0); }, [=] { return on_cpu_in(0.0F); }, gpu, width,
          pad(kColumns)};
}

template <template <class> class Row, class Make>
RowCase proxy_case(const char* name, const Make& make) {
  const auto exact = make(BetweenPasses<double>());
  const auto params = make(BetweenPasses<float>());
  return {name,
          [=] { return proxies_on_cpu<Row<double>, double>(exact); },
          [=] { return proxies_on_cpu<Row<float>, float>(params); },
          [=] { return proxies_on_gpu<Row<float>>(params); },
          0,
          kColumns};
}

const std::vector<RowCase>& row_cases() {
  static const std::vector<RowCase> list = [] {
    std::vector<RowCase> out;
    for_each_row_case([&]<template <class> class Row>(const char* name, const auto& make) {
      if constexpr (kRowOfProxies<Row<float>>) {
        out.push_back(proxy_case<Row>(name, make));
      } else {
        out.push_back(gallery_case<Row>(name, make));
      }
    });
    return out;
  }();
  return list;
}

TEST(RowCases, HaveSmallAndLargeClassesAndRowsThatDoNotCount) {
  const RowsProblem& p = problem();
  int small = 0;
  int large = 0;
  int silent = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    (p.member_counts[i] > kUsualMembers ? large : small) += 1;
    silent += p.counted[i] == 0 ? 1 : 0;
  }
  EXPECT_GT(small, 0);
  EXPECT_GT(large, 0);
  EXPECT_GT(silent, 0);
}

TEST(RowCases, FloatOnTheCpuAgreesWithDouble) {
  for (const RowCase& test : row_cases()) {
    SCOPED_TRACE(test.name);
    expect_close(test.cpu(), test.exact(), test.width, test.columns);
  }
}

// hardest_pair() must not read in front of the row's scratch, which belongs to another.
TEST(RowCases, ARowOfNanHasAHardestPositive) {
  const RowsProblem& p = problem();
  const std::vector<double> scores(std::size_t{pad(kColumns)}, std::nan(""));
  constexpr int kQuery = 0;
  const GalleryRow<double> in = p.row<double>(kQuery, scores.data());
  std::vector<int> memory(static_cast<std::size_t>(in.member_count) + 1, -5);
  const auto pair = hardest_pair(SerialTeam(), in, memory.data() + 1);
  EXPECT_EQ(pair.positive_column, memory[1]);
}

class CudaRows : public OnGpu {};

// Rows of NaN among others, with classes in shared and in global memory: no row may read what is
// not its own (compute-sanitizer sees it), and the others must stay as they were.
TEST_F(CudaRows, RowsOfNanLeaveTheOthersAlone) {
  RowsProblem spoilt = problem();
  for (int i = 0; i < kRows; i += 3) {
    std::fill_n(spoilt.scores.begin() + i * kStride, kColumns, std::nanf(""));
  }
  const Written<float> plain = on_gpu<TripletHardRow<float>>({}, 0);
  const Written<float> got = on_gpu<TripletHardRow<float>>({}, 0, spoilt);
  for (int i = 0; i < kRows; ++i) {
    if (i % 3 == 0) continue;
    ASSERT_EQ(got.losses[static_cast<std::size_t>(i)], plain.losses[static_cast<std::size_t>(i)])
        << "row " << i;
  }
}

TEST_F(CudaRows, AgreeWithDouble) {
  for (const RowCase& test : row_cases()) {
    SCOPED_TRACE(test.name);
    const Written<float> got = test.gpu();
    expect_close(got, test.exact(), test.width, test.columns);
    for (int i = 0; i < kRows; ++i) {
      for (std::int64_t j = pad(kColumns); j < kStride; ++j) {
        ASSERT_EQ(got.grads[static_cast<std::size_t>(i * kStride + j)], kUntouched)
            << "row " << i << " column " << j;
      }
    }
  }
}

// The NaN behind what a row of proxies writes equals itself.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  return std::ranges::equal(a, b, {}, bits, bits);
}

TEST_F(CudaRows, GiveTheSameBitsTwice) {
  for (const RowCase& test : row_cases()) {
    SCOPED_TRACE(test.name);
    const Written<float> first = test.gpu();
    const Written<float> second = test.gpu();
    EXPECT_TRUE(same_bits(first.losses, second.losses));
    EXPECT_TRUE(same_bits(first.stats, second.stats));
    EXPECT_TRUE(same_bits(first.grads, second.grads));
  }
}

TEST_F(CudaRows, WilcoxonPairsAgreeWithDouble) {
  std::vector<float> stats;  // f+ and f- of a row
  std::vector<double> positive, negative;
  std::vector<std::size_t> query;
  for (std::size_t i = 0; i < kRows; ++i) {
    stats.push_back(problem().scores[i]);
    stats.push_back(problem().scores[kStride + i]);
    if (problem().counted[i] == 0) continue;
    query.push_back(i);
    positive.push_back(static_cast<double>(stats[2 * i]));
    negative.push_back(static_cast<double>(stats[2 * i + 1]));
  }
  const auto count = static_cast<int>(query.size());
  const auto device_stats = DeviceBuffer::copy_of(stats);
  const auto counted = DeviceBuffer::copy_of(problem().counted);
  const auto gathered = DeviceBuffer::of<float>(std::int64_t{2} * kRows);
  const auto queries = DeviceBuffer::of<std::int32_t>(kRows);
  const auto number = DeviceBuffer::of<std::int32_t>(1);
  const auto values = DeviceBuffer::of<float>(kRows);
  const auto slopes = DeviceBuffer::of<float>(std::int64_t{2} * kRows);
  const auto part = DeviceBuffer::of<double>(1);
  const HardestPairs<float> pairs{gathered.as<float>(), gathered.as<float>() + kRows,
                                  queries.as<std::int32_t>(), number.as<std::int32_t>()};
  launch(
      GatherHardestPairs<float>{kRows, counted.as<std::uint8_t>(), device_stats.as<float>(), pairs},
      nullptr);
  launch(CompareHardestPairs<float>{kRows, 7.0F, pairs, values.as<float>(), slopes.as<float>()},
         nullptr);
  launch(SumHardestPairs<float>{pairs, values.as<float>(), part.as<double>()}, nullptr);
  const auto got = values.values<float>();
  const auto got_slopes = slopes.values<float>();
  double total = 0;
  for (std::size_t k = 0; k < query.size(); ++k) {
    double value = 0;
    double slope[2] = {0, 0};
    WilcoxonPairs<double>::row(SerialTeam(), 7.0, positive.data(), negative.data(), count,
                               static_cast<int>(k), &value, slope);
    total += value;
    // Sums of up to 203 sigmoids and their slopes, each off by 1e-6; slopes are shares of them.
    EXPECT_NEAR(got[k], value, 203e-6);
    EXPECT_NEAR(got_slopes[2 * query[k]], slope[0], 1e-3 / count / count);
    EXPECT_NEAR(got_slopes[2 * query[k] + 1], slope[1], 1e-3 / count / count);
  }
  EXPECT_NEAR(part.values<double>().front(), total / count / count, 1e-6);
}

}  // namespace
}  // namespace rk
