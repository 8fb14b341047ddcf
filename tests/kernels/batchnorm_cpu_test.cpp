// The CPU's passes of batch normalisation against their definition in double, on drawn layouts:
// planes within and beyond the rows that are summed at once, channels of every vector width,
// tensors that are stored past the caches.
#include "kernels/cpu/batchnorm.h"

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "engine/device/buffer.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

std::vector<float> normals(CounterRandom& random, std::int64_t count, double mean = 0) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(mean + random.normal()));
  }
  return out;
}

struct Drawn {
  Drawn(CounterRandom& random, const ImageLayout& of)
      : layout(of),
        gap(random.below(3) * 16),
        residual(random.below(2) == 0),
        relu(random.below(2) == 0),
        accumulate(random.below(2) == 0),
        threads(static_cast<int>(1 + random.below(3))),
        x(normals(random, layout.elements(), random.normal())),
        added(normals(random, layout.elements())),
        dy(normals(random, layout.batch * image())),
        held(normals(random, layout.elements())),
        scale(normals(random, layout.channels(), 1)),
        shift(normals(random, layout.channels())) {}

  std::int64_t image() const { return layout.blocks * layout.plane() + gap; }  // with its gap
  // f(channel, element of a dense tensor, element of one with gaps).
  template <class F> void for_each(F&& f) const {
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      for (std::int64_t i = 0; i < layout.blocks * layout.plane(); ++i) {
        const std::int64_t channel = i / layout.plane() * layout.block + i % layout.block;
        f(at(channel), at(n * layout.blocks * layout.plane() + i), at(n * image() + i));
      }
    }
  }

  ImageLayout layout;
  std::int64_t gap;
  bool residual, relu, accumulate;
  int threads;
  std::vector<float> x, added, dy, held, scale, shift;
};

void expect_the_definition(const Drawn& drawn) {
  const ImageLayout& layout = drawn.layout;
  const auto channels = at(layout.channels());
  const auto count = static_cast<double>(layout.batch * layout.pixels());
  std::vector<double> workspace(at(batchnorm_cpu::partial_sums(layout)));

  std::vector<float> mean(channels), variance(channels);
  batchnorm_cpu::plane_statistics(drawn.threads, layout, drawn.x.data(), workspace.data());
  batchnorm_cpu::finish_statistics(layout, workspace.data(), mean.data(), variance.data());
  std::vector<double> means(channels), squares(channels);
  drawn.for_each(
      [&](std::size_t c, std::size_t i, std::size_t) { means[c] += drawn.x[i] / count; });
  drawn.for_each([&](std::size_t c, std::size_t i, std::size_t) {
    squares[c] += (drawn.x[i] - means[c]) * (drawn.x[i] - means[c]);
  });
  for (std::size_t c = 0; c < channels; ++c) {
    // Sums in float over at most 128 rows, each off by a few 2^-24 of numbers up to 5, then in
    // double.
    ASSERT_NEAR(mean[c], means[c], 2e-6);
    ASSERT_NEAR(variance[c], squares[c] / count, 2e-5 * (squares[c] / count) + 1e-9);
  }

  // Of a ReLU, a value that is this near to 0 may be on either side.
  constexpr double kRounding = 1e-5;
  const batchnorm_cpu::Channels numbers{mean.data(), drawn.scale.data(), drawn.shift.data()};
  const bool signs = drawn.residual && drawn.relu;
  const Buffer bits(batchnorm_cpu::sign_bytes(layout));
  // As memory of tensors is: aligned for stores past the caches.
  const auto elements = at(layout.batch * drawn.image());
  const Buffer y = Buffer::of<float>(layout.batch * drawn.image());
  std::fill_n(y.as<float>(), elements, 7.0F);
  batchnorm_cpu::normalise(drawn.threads, layout, drawn.x.data(), numbers,
                           drawn.residual ? drawn.added.data() : nullptr, drawn.relu,
                           signs ? bits.data() : nullptr, y.as<float>(), drawn.gap);
  std::vector<double> value(drawn.x.size()), g(drawn.x.size());
  std::size_t written = 0;
  drawn.for_each([&](std::size_t c, std::size_t i, std::size_t spaced) {
    value[i] = (drawn.x[i] - static_cast<double>(mean[c])) * drawn.scale[c] + drawn.shift[c];
    if (drawn.residual) value[i] += drawn.added[i];
    ASSERT_NEAR(y.as<float>()[spaced], drawn.relu ? std::max(value[i], 0.0) : value[i], kRounding);
    g[i] = drawn.relu && value[i] <= 0 ? 0 : drawn.dy[spaced];
    ++written;
  });
  EXPECT_EQ(std::count(y.as<float>(), y.as<float>() + elements, 7.0F),
            static_cast<std::ptrdiff_t>(elements - written))
      << "what lies between the images is not this tensor's";

  const ReluMask mask = !drawn.relu ? ReluMask::kNone
                        : signs     ? ReluMask::kFromSigns
                                    : ReluMask::kFromInput;
  const batchnorm_cpu::Backward in{drawn.x.data(), drawn.dy.data(), mask,
                                   bits.data(),    numbers,         drawn.gap};
  std::vector<float> d_residual = drawn.held;
  batchnorm_cpu::gradient_sums(drawn.threads, layout, in,
                               drawn.residual ? d_residual.data() : nullptr, drawn.accumulate,
                               workspace.data());
  std::vector<double> sum(channels), product(channels), sums(channels), products(channels),
      slack(channels);
  batchnorm_cpu::finish_gradient_sums(layout, workspace.data(), sum.data(), product.data());
  std::vector<float> a = drawn.scale, b = drawn.shift, c_of = drawn.shift;
  for (float& factor : c_of) factor /= 4;
  const Buffer dx = Buffer::of<float>(layout.elements());
  std::copy(drawn.held.begin(), drawn.held.end(), dx.as<float>());
  batchnorm_cpu::gradient_apply(drawn.threads, layout, in, {a.data(), b.data(), c_of.data()},
                                dx.as<float>(), drawn.accumulate);
  drawn.for_each([&](std::size_t c, std::size_t i, std::size_t spaced) {
    const double centred = drawn.x[i] - static_cast<double>(mean[c]);
    sums[c] += g[i];
    products[c] += g[i] * centred;
    const double before = drawn.accumulate ? drawn.held[i] : 0.0;
    if (drawn.relu && std::abs(value[i]) < kRounding) {
      slack[c] += std::abs(drawn.dy[spaced]) * std::max(1.0, std::abs(centred));
      return;
    }
    if (drawn.residual) {
      ASSERT_NEAR(d_residual[i], before + g[i], 1e-6);
    }
    ASSERT_NEAR(dx.as<float>()[i], before + a[c] * g[i] + b[c] + c_of[c] * centred, 1e-5);
  });
  for (std::size_t c = 0; c < channels; ++c) {
    ASSERT_NEAR(sum[c], sums[c], 1e-6 * count + 1e-5 + slack[c]);
    ASSERT_NEAR(product[c], products[c], 2e-6 * count + 1e-5 + slack[c]);
  }
}

TEST(BatchNormCpu, FollowsItsDefinitionOnDrawnLayouts) {
  for (const std::uint64_t seed : random_seeds(80)) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    CounterRandom random(seed, 1, 0);
    // Whole vectors of 16 and 8 channels, and NHWC with any number.
    const std::int64_t block =
        random.below(3) == 0 ? 1 + random.below(50) : std::int64_t{8} << random.below(2);
    const Drawn drawn(random, {1 + random.below(3), 1 + random.below(3), 1 + random.below(17),
                               1 + random.below(17), block});
    expect_the_definition(drawn);
  }
}

TEST(BatchNormCpu, FollowsItsDefinitionBeyondTheCaches) {
  CounterRandom random(random_seed(), 2, 0);
  for (const std::int64_t block : {16, 24}) {
    const Drawn drawn(random, {2, 2, 150, 230, block});  // 8.4 MiB and more
    expect_the_definition(drawn);
  }
}

}  // namespace
}  // namespace rk
