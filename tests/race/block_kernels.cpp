#include "tests/race/block_kernels.h"

#include "kernels/cuda/batchnorm_kernels.h"
#include "kernels/cuda/convolution_kernels.h"
#include "kernels/cuda/loss_kernels.h"
#include "kernels/cuda/ranking_kernels.h"
#include "kernels/cuda/score_kernels.h"
#include "kernels/cuda/step_kernels.h"
#include "kernels/half_element.h"
#include "kernels/run_block.h"
#include "tests/host_gpu/kernels/serial_block.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rk::race {
namespace {

// Sums of up to 300 floats of about unit size, in another order; the sums that results are divided
// by are not small.
constexpr double kSumOrder = 1e-5;

std::set<std::string>& families_run() {
  static std::set<std::string> families;
  return families;
}

// "BatchNormSums" for BatchNormSums<float>.
template <class Kernel> std::string family() {
  std::string_view text =
      __PRETTY_FUNCTION__;  // ends with "Kernel = rk::BatchNormSums<float>]", or with more
  text.remove_prefix(text.find("Kernel = rk::") + std::string_view("Kernel = rk::").size());
  return std::string(text.substr(0, text.find_first_of("<];")));
}

// These run a case's kernels on either kind of block.
class SerialGrid {
 public:
  template <class Kernel> void run(const Kernel& kernel) const {
    families_run().insert(family<Kernel>());
    using host_gpu::SerialBlock;
    for (int index = 0; index < kernel.blocks(); ++index) {
      BlockMemory memory;
      typename SharedMemoryOf<Kernel, SerialBlock::kThreads>::Type shared;
      std::memset(&shared, 0xFF, sizeof(shared));
      run_on_block(kernel, SerialBlock(index, kernel.blocks(), &memory), shared);
    }
  }
};

template <class State> class EmulatedGrid {
 public:
  explicit EmulatedGrid(State& state) : state_(state) {}
  template <class Kernel> void run(const Kernel& kernel) const {
    using Shared = typename SharedMemoryOf<Kernel, State::kThreads>::Type;
    std::vector<Shared> shared(static_cast<std::size_t>(kernel.blocks()));
    std::memset(static_cast<void*>(shared.data()), 0xFF, shared.size() * sizeof(Shared));
    run_blocks(state_, kernel.blocks(), [&](const auto& block) {
      run_on_block(kernel, block, shared[static_cast<std::size_t>(block.index())]);
    });
  }

 private:
  State& state_;
};

template <class T> T narrowed(double x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return Element<T>::narrow(static_cast<float>(x));
  }
}

template <class T> double widened(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return static_cast<double>(Element<T>::widen(x));
  }
}

// An array aligned to 16 bytes: numbers of about unit size, the same for the same seed; NaN without
// a seed.
template <class T> class Array {
 public:
  explicit Array(std::int64_t count) : values_(static_cast<std::size_t>(count) + 16) {
    std::memset(static_cast<void*>(values_.data()), 0xFF, values_.size() * sizeof(T));
    const auto at = reinterpret_cast<std::uintptr_t>(values_.data()) % 16;
    const std::size_t skipped = (16 - at) / sizeof(T);
    begin_ = values_.data() + skipped;
    count_ = count;
  }
  Array(std::int64_t count, unsigned seed) : Array(count) {
    for (std::int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525U + 1013904223U;
      begin_[i] = narrowed<T>(static_cast<double>(seed >> 8) / (1 << 23) - 1);
    }
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T* data() { return begin_; }
  void append_to(std::vector<double>& out) const {
    for (std::int64_t i = 0; i < count_; ++i) out.push_back(widened(begin_[i]));
  }

 private:
  std::vector<T> values_;
  T* begin_;
  std::int64_t count_;
};

template <class... Arrays> std::vector<double> all(const Arrays&... arrays) {
  std::vector<double> out;
  (arrays.append_to(out), ...);
  return out;
}

// One for all cases: 256 threads under ThreadSanitizer take long to start.
WideBlockState& wide_block() {
  static WideBlockState state;
  return state;
}

template <class F> KernelCase kernel_case(const std::string& name, F run, double bound) {
  return {name, [=] { return run(SerialGrid()); },
          [=](BlockState& state) { return run(EmulatedGrid(state)); },
          [=] { return run(EmulatedGrid(wide_block())); }, bound};
}

// Forward and backward, with a residual (so with signs) or without; `channels` may be whole packs
// or not.
template <class T, bool kResidual, class Grid>
std::vector<double> batchnorm(const Grid& grid, int channels) {
  constexpr std::int64_t kRows = 300;
  constexpr ReluMask kMask = kResidual ? ReluMask::kFromSigns : ReluMask::kFromInput;
  constexpr GradientWrite kWrite = kResidual ? GradientWrite::kAdd : GradientWrite::kNone;
  const std::int64_t count = kRows * channels;
  Array<T> y(count, 1), residual(count, 2), dz(count, 3), z(count), dy(count), d_residual(count, 8);
  Array<float> gamma(channels, 4), beta(channels, 5);
  Array<float> running_mean(channels, 6), running_variance(channels, 7);
  Array<float> mean(channels), inv_std(channels), scale(channels);
  Array<float> d_gamma(channels), d_beta(channels), factors(3 * channels);
  Array<std::uint8_t> signs(sign_bytes<T>(kRows, channels));
  Array<double> partial(ChannelTiles{kRows, channels}.partials(2));
  grid.run(BatchNormSums<T>{kRows, channels, y.data(), partial.data()});
  grid.run(
      BatchNormStatistics{kRows,
                          channels,
                          partial.data(),
                          {gamma.data(), 1e-5, 0.1, running_mean.data(), running_variance.data(),
                           mean.data(), inv_std.data(), scale.data()}});
  grid.run(BatchNormApply<T, kResidual>{kRows, channels, y.data(), mean.data(), scale.data(),
                                        beta.data(), residual.data(), true, signs.data(),
                                        z.data()});
  const BatchNormBackward<T> in = {kRows,        channels,    y.data(),     dz.data(),
                                   signs.data(), mean.data(), scale.data(), beta.data()};
  grid.run(BatchNormGradientSums<T, kMask, kWrite>{in, d_residual.data(), partial.data()});
  grid.run(BatchNormGradientFactors{kRows, channels, true, partial.data(), inv_std.data(),
                                    scale.data(), d_gamma.data(), d_beta.data(), factors.data()});
  grid.run(
      BatchNormGradientApply<T, kMask, GradientWrite::kOverwrite>{in, factors.data(), dy.data()});
  return all(mean, inv_std, scale, running_mean, running_variance, z, d_residual, d_gamma, d_beta,
             dy);
}

// Two normalisations in front of a sum and a ReLU.
template <class T, class Grid> std::vector<double> batchnorm_join(const Grid& grid, int channels) {
  constexpr std::int64_t kRows = 300;
  const std::int64_t count = kRows * channels;
  Array<T> y(count, 1), s(count, 2), dz(count, 3), z(count), dy(count), ds(count);
  Array<float> beta(channels, 4), scale(channels, 5), mean(channels, 6), mean_s(channels, 7);
  Array<float> factors(3 * channels, 8), factors_s(3 * channels, 9);
  Array<std::uint8_t> signs(sign_bytes<T>(kRows, channels));
  Array<double> partial(ChannelTiles{kRows, channels}.partials(2));
  Array<double> partial_s(ChannelTiles{kRows, channels}.partials(2));
  grid.run(BatchNormJoin<T>{kRows,
                            channels,
                            {y.data(), mean.data(), scale.data(), beta.data()},
                            {s.data(), mean_s.data(), scale.data(), beta.data()},
                            signs.data(),
                            z.data()});
  const BatchNormJoinBackward<T> in = {kRows,     channels,     y.data(),    s.data(),
                                       dz.data(), signs.data(), mean.data(), mean_s.data()};
  grid.run(BatchNormJoinGradientSums<T>{in, partial.data(), partial_s.data()});
  grid.run(
      BatchNormJoinGradientApply<T>{in, factors.data(), factors_s.data(), dy.data(), ds.data()});
  return all(z, partial, partial_s, dy, ds);
}

template <class T, class Grid>
std::vector<double> folded(const Grid& grid, const FilterShape& shape) {
  constexpr std::int64_t kRows = 200;
  const std::int64_t dense = shape.dense(), stored = shape.stored();
  Array<T> folded_w(stored), cast(stored), d_folded(stored, 6);
  Array<T> dy(kRows * shape.outputs, 7), z(kRows * shape.outputs, 8);
  Array<float> w(dense, 1), gamma(shape.outputs, 2), beta(shape.outputs, 3), mean(shape.outputs, 4);
  Array<T> bias(shape.outputs);
  Array<float> running(shape.outputs), scale(shape.outputs), inv_std(shape.outputs), dw(dense);
  Array<float> d_gamma(shape.outputs), d_beta(shape.outputs), d_weight(dense);
  for (int o = 0; o < shape.outputs; ++o) running.data()[o] = 1;
  Array<double> partial(ChannelTiles{kRows, shape.outputs}.partials(1));
  const Filter<T> filters[] = {
      {.shape = shape, .weight = w.data(), .prepared = cast.data()},
      {shape, w.data(), folded_w.data(), gamma.data(), beta.data(), mean.data(), running.data(),
       1e-5, bias.data(), scale.data(), inv_std.data()}};
  std::vector<FilterPart> parts;
  for (int n = 0; n < 2; ++n) {
    FilterPart::for_each(n, shape, [&](const FilterPart& part) { parts.push_back(part); });
  }
  grid.run(PrepareWeights<T>{filters, parts.data(), static_cast<int>(parts.size())});
  grid.run(MaskedSums<T>{kRows, shape.outputs, shape.outputs, dy.data(), z.data(), dy.data(),
                         nullptr, false, partial.data()});
  const FoldedGradient<T> unfolded[] = {{shape, kRows, partial.data(), d_folded.data(), w.data(),
                                         scale.data(), inv_std.data(), mean.data(), dw.data(),
                                         d_gamma.data(), d_beta.data()}};
  const WeightGradient<T> wide[] = {{shape, d_folded.data(), d_weight.data()}};
  parts.clear();
  FoldedGradients<T>::for_each_part(0, shape,
                                    [&](const FilterPart& part) { parts.push_back(part); });
  grid.run(FoldedGradients<T>{unfolded, parts.data(), static_cast<int>(parts.size())});
  parts.clear();
  FilterPart::for_each(0, shape, [&](const FilterPart& part) { parts.push_back(part); });
  grid.run(WidenGradients<T>{wide, parts.data(), static_cast<int>(parts.size())});
  return all(folded_w, bias, scale, inv_std, dy, dw, d_gamma, d_beta, cast, d_weight);
}

template <class T, class Grid> std::vector<double> pool(const Grid& grid) {
  constexpr int kChannels = 3 * kPack<T>;
  const PoolShape shape{1, kChannels, 5, 5, 3, 3, {3, 3}, {2, 2}, {1, 1}, kChannels};
  Array<T> x(25 * kChannels, 1), y(9 * kChannels), dy(9 * kChannels, 2), dx(25 * kChannels);
  Array<std::uint8_t> choice(9 * kChannels);
  grid.run(MaxPool<T>{shape, x.data(), y.data(), choice.data()});
  grid.run(MaxPoolGradient<T>{shape, choice.data(), dy.data(), dx.data(), false});
  return all(y, choice, dx);
}

template <class T, class Grid> std::vector<double> average_pool(const Grid& grid) {
  constexpr int kChannels = 3 * kPack<T>;
  constexpr std::int64_t kCount = 25 * kChannels;
  const PoolShape shape{1, kChannels, 5, 5, 5, 5, {3, 3}, {1, 1}, {1, 1}, kChannels};
  Array<T> x(kCount, 1), y(kCount), dy(kCount, 2), dx(kCount), joined(2 * kCount, 3);
  grid.run(AveragePool<T>{shape, x.data(), y.data()});
  grid.run(AveragePoolGradient<T>{shape, dy.data(), dx.data(), false});
  grid.run(
      CopyChannels<T>{25, kChannels, y.data(), kChannels, joined.data() + kPack<T>, 2 * kChannels});
  return all(y, dx, joined);
}

template <class T, class Grid> std::vector<double> global_pool(const Grid& grid, PoolKind kind) {
  constexpr int kBatch = 2;
  constexpr int kRows = 25;
  constexpr int kChannels = 3 * kPack<T>;
  constexpr int kCount = kBatch * kRows * kChannels;
  Array<T> x(kCount, 1), dx(kCount);
  Array<float> y(kBatch * kChannels), dy(kBatch * kChannels, 2);
  Array<std::int32_t> best(kBatch * kChannels);
  grid.run(
      GlobalPool<T>{kBatch, kRows, kChannels, kind, 3, 0.01F, x.data(), best.data(), y.data()});
  grid.run(GlobalPoolGradient<T>{kBatch, kRows, kChannels, kind, 3, 0.01F, x.data(), y.data(),
                                 best.data(), dy.data(), dx.data(), false});
  return kind == PoolKind::kMax ? all(y, best, dx) : all(y, dx);
}

template <class Grid> std::vector<double> head(const Grid& grid) {
  constexpr int kRows = 5;
  constexpr int kDim = 19;
  Array<float> x(kRows * kDim, 1), y(kRows * kDim), dy(kRows * kDim, 2), dx(kRows * kDim);
  Array<float> sums(kDim);
  Array<double> norms(kRows);
  grid.run(L2Norm{kRows, kDim, 1e-12, x.data(), y.data(), norms.data()});
  grid.run(L2NormGradient{kRows, kDim, 1e-12, x.data(), norms.data(), dy.data(), dx.data(), false});
  grid.run(ColumnSums<float, float>{kRows, kDim, dx.data(), sums.data()});
  Array<float> filled(kRows * kDim);
  grid.run(FillRows{kRows, kDim, sums.data(), filled.data()});
  constexpr int kSide = 77;  // three tiles a side, the last one not full
  Array<float> matrix(kSide * kSide, 3);
  grid.run(AddTranspose{matrix.data(), kSide, kSide});
  return all(y, norms, dx, sums, filled, matrix);
}

// The statistics of batch norm that are not taken from the batch itself.
template <class Grid> std::vector<double> other_statistics(const Grid& grid) {
  constexpr int kChannels = 300;  // of more than one block
  Array<float> gamma(kChannels, 1), running_mean(kChannels, 2), running_variance(kChannels, 3);
  Array<float> sum(kChannels, 4), squares(kChannels, 5);
  Array<float> mean(kChannels), inv_std(kChannels), scale(kChannels);
  for (int c = 0; c < kChannels; ++c) {
    running_variance.data()[c] += 2;
    squares.data()[c] += 40;
  }
  grid.run(BatchNormStatisticsOfSums{
      9,
      kChannels,
      sum.data(),
      squares.data(),
      {gamma.data(), 1e-5, 0.1, running_mean.data(), running_variance.data(), mean.data(),
       inv_std.data(), scale.data()}});
  std::vector<double> out = all(running_mean, running_variance, mean, inv_std, scale);
  grid.run(BatchNormRunning{kChannels, gamma.data(), 1e-5, running_mean.data(),
                            running_variance.data(), mean.data(), inv_std.data(), scale.data()});
  const std::vector<double> running = all(mean, inv_std, scale);
  out.insert(out.end(), running.begin(), running.end());
  return out;
}

template <class T, class Grid> std::vector<double> elementwise(const Grid& grid) {
  constexpr std::int64_t kCount = 4107;
  Array<T> a(kCount, 1), b(kCount, 2), sum(kCount), relu(kCount), dx(kCount, 3);
  Array<float> scaled(kCount, 5), factor(1, 4);
  grid.run(AddTensors<T>{kCount, a.data(), b.data(), sum.data()});
  grid.run(CopyOrAdd<T>{kCount, sum.data(), b.data(), true});
  grid.run(Relu<T>{kCount, b.data(), relu.data()});
  grid.run(ReluGradient<T>{kCount, relu.data(), a.data(), dx.data(), true});
  grid.run(Scale{kCount, factor.data(), scaled.data()});
  grid.run(AddBiasAndRelu<T>{.rows = kCount / 37,
                             .channels = 37,
                             .bias = a.data(),
                             .residual = dx.data(),
                             .relu = true,
                             .y = sum.data(),
                             .y_stride = 37});
  return all(sum, b, relu, dx, scaled);
}

template <class T, class Grid> std::vector<double> difference(const Grid& grid) {
  constexpr std::int64_t kCount = 4107;
  Array<T> a(kCount, 1), b(kCount, 2);
  Array<double> partial(2 * SquaredDifferences<T>{.count = kCount}.blocks());
  grid.run(SquaredDifferences<T>{kCount, a.data(), b.data(), partial.data()});
  return all(partial);
}

template <class Grid> std::vector<double> optimizer(const Grid& grid) {
  constexpr std::int64_t kCount = 4107;
  const OptimizerParams params;
  const OptimizerGroup groups[] = {{1, 6, 1.0, 0.01}, {6, 4099, 2.0, 0.0}, {4101, 4102, 0.5, 0.1}};
  Array<float> p(kCount, 1), g(kCount, 2), m(kCount, 3), v(kCount, 4);
  for (std::int64_t i = 0; i < kCount; ++i) v.data()[i] += 1;  // v holds squares, never negative
  StepState step{.rate = 0.01, .loss_scale = 2, .dynamic_scale = true};
  const SquareSums squares{kCount, g.data(), nullptr};
  Array<double> partial(squares.blocks());
  grid.run(SquareSums{kCount, g.data(), partial.data()});
  grid.run(FinishNorm{params, squares.blocks(), partial.data(), &step});
  grid.run(OptimizerStep{params, &step, groups, 3, kCount, g.data(), p.data(), m.data(), v.data()});
  std::vector<double> out = all(p, m, v);
  out.push_back(step.norm);
  return out;
}

// Pixel by pixel, and in cells of 2 x 2.
template <class T, class Grid> std::vector<double> input(const Grid& grid) {
  constexpr int kSide = 7, kCells = 4, kPadded = kPack<T>;
  constexpr int kBytes = 2 * kSide * kSide * 3;
  Array<std::uint8_t> pixels(kBytes);
  for (int i = 0; i < kBytes; ++i) pixels.data()[i] = static_cast<std::uint8_t>(i * 7);
  Array<float> table(768, 1);
  Array<T> out(2 * kSide * kSide * kPadded), cells(2 * kCells * kCells * 16);
  grid.run(FillInput<T>{2, kSide, kPadded, pixels.data(), table.data(), out.data()});
  grid.run(FillInput<T>{
      2, kSide, 16, pixels.data(), table.data(), cells.data(), {2, kCells, kCells, 0, 0}});
  return all(out, cells);
}

// Ranks two classes of scores with ties; the sorts between the kernels run on the host.
template <class Grid> std::vector<double> ranking(const Grid& grid) {
  constexpr int kItems = 70;
  constexpr int kAll = 2 * kItems;
  using Key = std::uint64_t;
  std::vector<float> scores;
  std::vector<std::uint8_t> targets;
  std::vector<std::uint32_t> own;
  for (int i = 0; i < kAll; ++i) {
    scores.push_back(static_cast<float>(i * 37 % 97) / 64.0F);
    targets.push_back(i % 11 < 2 ? 1 : 0);
  }
  for (int n = 0; n < kAll; ++n) {
    const int element = n % kItems * 2 + n / kItems;
    if (targets[static_cast<std::size_t>(element)] != 0) {
      own.push_back(static_cast<std::uint32_t>(n));
    }
  }
  const auto positives = static_cast<std::int64_t>(own.size());
  Array<float> grad(kAll), value(kAll), rest(kAll);
  Array<Key> keys(kAll), moved_keys(positives);
  Array<std::uint32_t> order(kAll), moved(positives);
  Array<std::int32_t> above(kAll + 1), place(kAll), counts(1);
  Array<double> partial(1);
  double loss = 0;
  RankingArrays<Key> at;
  at.items = kItems;
  at.segments = 2;
  at.positives = positives;
  at.lambda = 3;
  at.margin = 0.1;
  at.weight = 0.5;
  at.scores = scores.data();
  at.targets = targets.data();
  at.own = own.data();
  at.grad = grad.data();
  at.keys = keys.data();
  at.order = order.data();
  at.above = above.data();
  at.place = place.data();
  at.moved_value = value.data();
  at.moved_rest = rest.data();
  at.moved_keys = moved_keys.data();
  at.moved = moved.data();
  const auto sort = [](Key* by, std::uint32_t* items, std::int64_t count) {
    std::vector<std::pair<Key, std::uint32_t>> pairs;
    for (std::int64_t i = 0; i < count; ++i) pairs.push_back({by[i], items[i]});
    std::ranges::stable_sort(pairs, {}, &std::pair<Key, std::uint32_t>::first);
    for (std::int64_t i = 0; i < count; ++i) {
      by[i] = pairs[static_cast<std::size_t>(i)].first;
      items[i] = pairs[static_cast<std::size_t>(i)].second;
    }
  };
  grid.run(KeyScores<Key>{at});
  sort(at.keys, at.order, kAll);
  grid.run(CountFlags<Key>{at, counts.data()});
  grid.run(SumFlags{1, counts.data()});
  grid.run(WriteRanks<Key>{at, counts.data()});
  grid.run(MovePositives<Key>{at, partial.data()});
  sort(at.moved_keys, at.moved, positives);
  grid.run(KeyMoved<Key>{at});
  sort(at.moved_keys, at.moved, positives);
  grid.run(NegativeGradients<Key>{at});
  grid.run(PositiveGradients<Key>{at});
  grid.run(SumLostPrecision{partial.data(), ranking_blocks(positives), 0.5, false, &loss});
  std::vector<double> out = all(grad);
  out.push_back(loss);
  return out;
}

// A tile of three queries: with few positives, with many, with none.
template <class Grid> std::vector<double> counting(const Grid& grid) {
  constexpr int kRows = 3, kColumns = 200, kStride = 208;
  Array<float> scores(kRows * kStride, 3), thresholds(100);
  const ScoredQuery queries[] = {
      {10, 15, 12, 13, 0, 4}, {20, 117, 20, 21, 4, 96}, {0, 1, 0, 1, 100, 0}};
  Array<std::int32_t> counts(100), unequal(kRows);
  Array<std::uint64_t> fine(kFineBins), twice_wins(kRows);
  Array<double> sums(2 * kRows);
  const float positives[] = {-0.5F, 0, 0.25F, 0.75F};
  const std::uint32_t first[] = {0, 2, 4};
  std::fill_n(counts.data(), 100, 0);
  std::fill_n(fine.data(), kFineBins, std::uint64_t{0});
  std::fill_n(sums.data(), 2 * kRows, 0.0);
  std::fill_n(twice_wins.data(), kRows, std::uint64_t{0});
  const ScoreTileView tile{scores.data(), kStride, kRows, 0, kColumns, queries};
  grid.run(GatherPositives{tile, thresholds.data()});
  std::sort(thresholds.data(), thresholds.data() + 4, std::greater<>());
  std::sort(thresholds.data() + 4, thresholds.data() + 100, std::greater<>());
  grid.run(CountScores{tile,
                       thresholds.data(),
                       counts.data(),
                       {.fine = fine.data(),
                        .sums = sums.data(),
                        .positives = {positives, first, 4, 2, -0.5F, 2 / 1.25F},
                        .twice_wins = twice_wins.data()}});
  grid.run(CountUnequal{scores.data(), kStride, kRows, kColumns, unequal.data()});
  return all(thresholds, counts, fine, sums, twice_wins, unequal);
}

// What runs between and behind the rows of a loss, and what looks at its proxies.
template <class Grid> std::vector<double> around_rows(const Grid& grid) {
  constexpr int kRows = 37, kDim = 19;
  Array<float> stats(2 * kRows, 1), positive(kRows, 2), negative(kRows, 3), values(kRows, 4);
  Array<float> slopes(2 * kRows, 5), losses(kRows, 6), gradient(kDim, 7);
  Array<std::int32_t> query(kRows), count(1);
  Array<std::uint8_t> counted(kRows);
  for (int row = 0; row < kRows; ++row) counted.data()[row] = row % 3 != 1 ? 1 : 0;
  Array<double> part(1), loss(1);
  const HardestPairs<float> pairs{positive.data(), negative.data(), query.data(), count.data()};
  grid.run(GatherHardestPairs<float>{kRows, counted.data(), stats.data(), pairs});
  grid.run(CompareHardestPairs<float>{kRows, 20, pairs, values.data(), slopes.data()});
  grid.run(SumHardestPairs<float>{pairs, values.data(), part.data()});
  const BatchNumbers numbers{.valid = kRows, .value_weight = 1.0 / kRows};
  grid.run(SumLosses<float>{.batch = &numbers,
                            .losses = losses.data(),
                            .rows = kRows,
                            .part = part.data(),
                            .gradient = gradient.data(),
                            .dim = kDim,
                            .loss = loss.data()});
  constexpr int kStats = ContrastiveRow<float>::kStats;
  Array<double> totals(kStats, 8), average(1), lengths(kRows, 9);
  ContrastiveRow<float>::Params params;
  for (int i = 0; i < kStats; ++i) totals.data()[i] += 2;
  grid.run(
      FinishRows<ContrastiveRow<float>>{&numbers, totals.data(), &params, nullptr, average.data()});
  Array<float> proxies(kRows * kDim, 10);
  for (int row = 0; row < kRows; ++row)
    lengths.data()[row] = row == 29 ? 0 : 2 + lengths.data()[row];
  BadProxy bad;
  grid.run(FindBadProxy{kRows, kDim, 1e10F, proxies.data(), lengths.data(), &bad});
  constexpr int kSteps = 9, kPerStep = 3 * AucTable<float>::kCoefficients, kThresholds = 5;
  Array<double> bell(5 * kPerStep, 11);
  Array<float> of_thresholds(2 * kThresholds, 12), coefficients(2 * kSteps * kPerStep);
  grid.run(FillAucTable<float>{{.bell = bell.data(),
                                .reach = 2,
                                .count = kThresholds,
                                .steps = kSteps,
                                .per_step = kPerStep,
                                .coefficients = coefficients.data()},
                               of_thresholds.data()});
  std::vector<double> out =
      all(positive, negative, query, count, values, slopes, part, loss, average, coefficients);
  out.insert(out.end(), {static_cast<double>(params.per_positive), static_cast<double>(bad.row),
                         static_cast<double>(bad.what)});
  return out;
}

// The cases of kernels that work on images of T. `of`: behind their names. rounding: of results.
template <class T>
void add_cases_of_images(std::vector<KernelCase>& list, const std::string& of, double rounding) {
  constexpr int kPacks = 3 * kPack<T>, kOdd = kPack<T> + 1;
  const auto add = [&](const std::string& name, auto run, double bound) {
    list.push_back(kernel_case(name + of, run, std::max(bound, rounding)));
  };
  for (const int channels : {kPacks, kOdd}) {
    const std::string odd = channels == kOdd ? "_odd" : "";
    add(
        "batchnorm" + odd, [=](const auto& grid) { return batchnorm<T, false>(grid, channels); },
        kSumOrder);
    add(
        "batchnorm_residual" + odd,
        [=](const auto& grid) { return batchnorm<T, true>(grid, channels); }, kSumOrder);
    add(
        "batchnorm_join" + odd, [=](const auto& grid) { return batchnorm_join<T>(grid, channels); },
        kSumOrder);
  }
  add(
      "folded",
      [](const auto& grid) {
        return folded<T>(grid, {6, 4, 2 * kPack<T>, 2 * kPack<T>});
      },
      kSumOrder);
  add(
      "folded_padded",
      [](const auto& grid) {
        return folded<T>(grid, {5, 4, 3, 4});
      },
      kSumOrder);
  add(
      "max_pool", [](const auto& grid) { return pool<T>(grid); }, 0);
  add(
      "average_pool", [](const auto& grid) { return average_pool<T>(grid); }, 0);
  add(
      "global_average", [](const auto& grid) { return global_pool<T>(grid, PoolKind::kAverage); },
      kSumOrder);
  add(
      "global_max", [](const auto& grid) { return global_pool<T>(grid, PoolKind::kMax); }, 0);
  add(
      "global_gem", [](const auto& grid) { return global_pool<T>(grid, PoolKind::kGem); },
      kSumOrder);
  add(
      "elementwise", [](const auto& grid) { return elementwise<T>(grid); }, 0);
  add(
      "difference", [](const auto& grid) { return difference<T>(grid); }, 1e-12);
  add(
      "input", [](const auto& grid) { return input<T>(grid); }, 0);
}

std::vector<KernelCase> make_cases() {
  std::vector<KernelCase> list = {
      kernel_case(
          "batchnorm_other_statistics", [](const auto& grid) { return other_statistics(grid); }, 0),
      kernel_case(
          "head", [](const auto& grid) { return head(grid); }, kSumOrder),
      kernel_case(
          "around_rows", [](const auto& grid) { return around_rows(grid); }, kSumOrder),
      kernel_case(
          "ranking", [](const auto& grid) { return ranking(grid); }, 1e-12),
      kernel_case(
          "counting", [](const auto& grid) { return counting(grid); }, 1e-12),
      kernel_case(
          "optimizer", [](const auto& grid) { return optimizer(grid); }, 1e-12),
  };
  add_cases_of_images<float>(list, "", 0);
  // Its packs are as wide as those of Bfloat16. Sums in another order may round to the next number.
  add_cases_of_images<Float16>(list, "_fp16", 0x1p-10);
  return list;
}

}  // namespace

std::vector<std::string> kernels_never_run() {
  std::vector<std::string> never;
  const auto look = [&](std::string_view kernel) {
    const std::string family(kernel.substr(0, kernel.find('<')));
    if (families_run().insert(family).second) never.push_back(family);
  };
#define RK_LOOK(...) look(#__VA_ARGS__)
  RK_BATCHNORM_KERNELS(RK_LOOK);
  RK_CONVOLUTION_KERNELS(RK_LOOK);
  RK_STEP_KERNELS(RK_LOOK);
  RK_LOSS_KERNELS(RK_LOOK);
  RK_SCORE_KERNELS(RK_LOOK);
  RK_RANKING_KERNELS(RK_LOOK);
#undef RK_LOOK
  return never;
}

const std::vector<KernelCase>& kernel_cases() {
  static const std::vector<KernelCase> list = make_cases();
  return list;
}

}  // namespace rk::race
