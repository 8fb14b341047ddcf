// Batch normalisation forward and backward, all its kernels one after the other.
#include "kernels/cuda/batchnorm_kernels.h"
#include "tests/kernel_cases/kernel_case.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>

namespace rk {
namespace {

struct Form {
  std::string name;
  bool batch = true;
  bool relu = false;
  bool residual = false;
  ReluMask mask = ReluMask::kNone;
  bool accumulate = false;  // adds to dy and d_residual
  bool wanted = true;       // computes the residual's gradient
  bool sums = false;        // statistics from sums that a convolution would have added up
};

const std::vector<Form>& forms() {
  static const std::vector<Form> list = {
      {.name = "plain"},
      {.name = "plain_accumulate", .accumulate = true},
      {.name = "sums", .sums = true},
      {.name = "running", .batch = false},
      {.name = "relu", .relu = true, .mask = ReluMask::kFromInput},
      {.name = "relu_running", .batch = false, .relu = true, .mask = ReluMask::kFromInput},
      {.name = "relu_accumulate", .relu = true, .mask = ReluMask::kFromInput, .accumulate = true},
      {.name = "residual", .residual = true},
      {.name = "residual_accumulate", .residual = true, .accumulate = true},
      {.name = "residual_relu", .relu = true, .residual = true, .mask = ReluMask::kFromSigns},
      {.name = "residual_relu_accumulate",
       .relu = true,
       .residual = true,
       .mask = ReluMask::kFromSigns,
       .accumulate = true},
      {.name = "residual_relu_unwanted",
       .relu = true,
       .residual = true,
       .mask = ReluMask::kFromSigns,
       .wanted = false},
  };
  return list;
}

// What the kernels read, and the gradients they add to. BatchNormProblem<double, double> holds the
// same numbers in double.
template <class T, class Parameter> struct BatchNormProblem {
  std::int64_t rows;
  int channels;
  std::vector<T> y, residual, dz;
  std::vector<Parameter> gamma, beta, running_mean, running_variance;
  std::vector<T> d_residual, dy;
};

template <class T>
BatchNormProblem<T, float> draw(std::int64_t rows, int channels, double offset,
                                std::uint32_t seed) {
  MadeUp made_up(static_cast<std::uint32_t>(rows * 31 + channels) + seed);
  const std::int64_t count = rows * channels;
  // Braces draw from left to right.
  return {rows,
          channels,
          made_up.normals<T>(count, offset),
          made_up.normals<T>(count),
          made_up.normals<T>(count),
          made_up.normals<float>(channels, 1, 0.2),
          made_up.normals<float>(channels, 0, 0.5),
          made_up.normals<float>(channels, 0.1, 0.1),
          made_up.normals<float>(channels, 2, 0.3),
          made_up.normals<T>(count),
          made_up.normals<T>(count)};
}

template <class T>
BatchNormProblem<double, double> in_double(const BatchNormProblem<T, float>& in) {
  return {in.rows,
          in.channels,
          widened(in.y),
          widened(in.residual),
          widened(in.dz),
          widened(in.gamma),
          widened(in.beta),
          widened(in.running_mean),
          widened(in.running_variance),
          widened(in.d_residual),
          widened(in.dy)};
}

// Everything in double, one channel after the other.
struct Reference {
  std::vector<double> mean, variance, running_mean, running_variance, inv_std, scale, z, d_gamma,
      d_beta, d_residual, dy;
  double nearest_to_zero = std::numeric_limits<double>::infinity();  // the ReLU's least |input|
};

constexpr double kEpsilon = 1e-3;
constexpr double kMomentum = 0.3;

Reference reference(const BatchNormProblem<double, double>& in, const Form& form) {
  Reference out;
  out.z.resize(in.y.size());
  out.d_residual = in.d_residual;
  out.dy = in.dy;
  const auto n = static_cast<double>(in.rows);
  for (int c = 0; c < in.channels; ++c) {
    const auto index = [&](std::int64_t r) { return at(r * in.channels + c); };
    double mean = 0;
    for (std::int64_t r = 0; r < in.rows; ++r) mean += in.y[index(r)] / n;
    double variance = 0;
    for (std::int64_t r = 0; r < in.rows; ++r) {
      variance += (in.y[index(r)] - mean) * (in.y[index(r)] - mean) / n;
    }
    const double unbiased = n > 1 ? n / (n - 1) : 1;
    const double running_mean = in.running_mean[at(c)];
    const double running_variance = in.running_variance[at(c)];
    out.running_mean.push_back(form.batch ? (1 - kMomentum) * running_mean + kMomentum * mean
                                          : running_mean);
    out.running_variance.push_back(form.batch ? (1 - kMomentum) * running_variance +
                                                    kMomentum * unbiased * variance
                                              : running_variance);
    if (!form.batch) mean = running_mean;
    if (!form.batch) variance = running_variance;
    const double inv_std = 1 / std::sqrt(variance + kEpsilon);
    const double scale = in.gamma[at(c)] * inv_std;
    double sum = 0;
    double product = 0;
    std::vector<double> gradient;
    for (std::int64_t r = 0; r < in.rows; ++r) {
      double value = (in.y[index(r)] - mean) * scale + in.beta[at(c)];
      if (form.residual) value += in.residual[index(r)];
      out.nearest_to_zero = std::min(out.nearest_to_zero, std::abs(value));
      out.z[index(r)] = form.relu ? std::max(value, 0.0) : value;
      const double g = form.relu && value <= 0 ? 0 : in.dz[index(r)];
      gradient.push_back(g);
      sum += g;
      product += g * (in.y[index(r)] - mean);
    }
    for (std::int64_t r = 0; r < in.rows; ++r) {
      const double g = gradient[at(r)];
      double dy = scale * g;
      if (form.batch) {
        dy = scale * (g - sum / n - (in.y[index(r)] - mean) * inv_std * inv_std * product / n);
      }
      out.dy[index(r)] = form.accumulate ? in.dy[index(r)] + dy : dy;
      out.d_residual[index(r)] = form.accumulate ? in.d_residual[index(r)] + g : g;
    }
    out.mean.push_back(mean);
    out.inv_std.push_back(inv_std);
    out.scale.push_back(scale);
    out.d_gamma.push_back(inv_std * product);
    out.d_beta.push_back(sum);
  }
  return out;
}

// The kernels' memory: what they read, and what none of them has written yet.
template <class T> struct OnDevice {
  OnDevice(const BatchNormProblem<T, float>& drawn, const Form& chosen)
      : in(drawn),
        form(chosen),
        y(DeviceBuffer::copy_of(in.y)),
        residual(DeviceBuffer::copy_of(in.residual)),
        dz(DeviceBuffer::copy_of(in.dz)),
        gamma(DeviceBuffer::copy_of(in.gamma)),
        beta(DeviceBuffer::copy_of(in.beta)),
        running_mean(DeviceBuffer::copy_of(in.running_mean)),
        running_variance(DeviceBuffer::copy_of(in.running_variance)),
        d_residual(form.accumulate ? DeviceBuffer::copy_of(in.d_residual) : unwritten<T>(count())),
        dy(form.accumulate ? DeviceBuffer::copy_of(in.dy) : unwritten<T>(count())) {}

  void compute_statistics() {
    const BatchNormStatisticsOut out = {.gamma = gamma.as<float>(),
                                        .epsilon = kEpsilon,
                                        .momentum = kMomentum,
                                        .running_mean = running_mean.as<float>(),
                                        .running_variance = running_variance.as<float>(),
                                        .mean = mean.as<float>(),
                                        .inv_std = inv_std.as<float>(),
                                        .scale = scale.as<float>()};
    if (form.sums) {
      sum = DeviceBuffer::copy_of(channel_sums(1));
      squares = DeviceBuffer::copy_of(channel_sums(2));
      launch(
          BatchNormStatisticsOfSums{rows(), channels(), sum.as<float>(), squares.as<float>(), out},
          nullptr);
    } else if (form.batch) {
      launch(BatchNormSums<T>{rows(), channels(), y.as<T>(), partial.as<double>()}, nullptr);
      launch(BatchNormStatistics{rows(), channels(), partial.as<double>(), out}, nullptr);
    } else {
      launch(BatchNormRunning{channels(), gamma.as<float>(), kEpsilon, running_mean.as<float>(),
                              running_variance.as<float>(), mean.as<float>(), inv_std.as<float>(),
                              scale.as<float>()},
             nullptr);
    }
  }

  void forward() {
    if (form.residual) {
      apply<true>();
    } else {
      apply<false>();
    }
  }

  void backward() {
    const BatchNormBackward<T> backward = {
        rows(),  channels(),       y.as<T>(),         dz.as<T>(),
        signs(), mean.as<float>(), scale.as<float>(), beta.as<float>()};
    const GradientWrite write = form.accumulate ? GradientWrite::kAdd : GradientWrite::kOverwrite;
    const bool writes = writes_residual();
    with_gradient_sums(
        form.mask, writes ? write : GradientWrite::kNone,
        [&]<ReluMask kMask, GradientWrite kResidual>() {
          launch(
              BatchNormGradientSums<T, kMask, kResidual>{
                  backward, writes ? d_residual.as<T>() : nullptr, partial.as<double>()},
              nullptr);
        });
    launch(BatchNormGradientFactors{rows(), channels(), form.batch, partial.as<double>(),
                                    inv_std.as<float>(), scale.as<float>(), d_gamma.as<float>(),
                                    d_beta.as<float>(), factors.as<float>()},
           nullptr);
    with_gradient_apply(form.mask, form.accumulate, [&]<ReluMask kMask, GradientWrite kWrite>() {
      launch(BatchNormGradientApply<T, kMask, kWrite>{backward, factors.as<float>(), dy.as<T>()},
             nullptr);
    });
  }

  bool writes_residual() const { return form.residual && form.wanted; }

  std::int64_t rows() const { return in.rows; }
  int channels() const { return in.channels; }
  std::int64_t count() const { return rows() * channels(); }
  std::uint8_t* signs() const {
    return form.mask == ReluMask::kFromSigns ? sign_bits.as<std::uint8_t>() : nullptr;
  }

  // For each channel the sum of y^power, as a convolution would have added it up.
  std::vector<float> channel_sums(int power) const {
    const std::vector<double> values = widened(in.y);
    std::vector<float> out;
    for (int c = 0; c < channels(); ++c) {
      double total = 0;
      for (std::int64_t r = 0; r < rows(); ++r) {
        total += std::pow(values[at(r * channels() + c)], power);
      }
      out.push_back(static_cast<float>(total));
    }
    return out;
  }

  template <bool kResidual> void apply() {
    launch(BatchNormApply<T, kResidual>{rows(), channels(), y.as<T>(), mean.as<float>(),
                                        scale.as<float>(), beta.as<float>(),
                                        kResidual ? residual.as<T>() : nullptr, form.relu, signs(),
                                        z.as<T>()},
           nullptr);
  }

  const BatchNormProblem<T, float>& in;
  const Form& form;
  DeviceBuffer y, residual, dz, gamma, beta;
  DeviceBuffer sum, squares;  // of each channel, with form.sums
  DeviceBuffer partial = unwritten<double>(ChannelTiles{rows(), channels()}.partials(2));
  DeviceBuffer sign_bits = unwritten<std::uint8_t>(sign_bytes<T>(rows(), channels()));
  DeviceBuffer factors = unwritten<float>(std::int64_t{3} * channels());

  // What they make.
  DeviceBuffer running_mean, running_variance;
  DeviceBuffer mean = unwritten<float>(channels());
  DeviceBuffer inv_std = unwritten<float>(channels());
  DeviceBuffer scale = unwritten<float>(channels());
  DeviceBuffer z = unwritten<T>(count());
  DeviceBuffer d_gamma = unwritten<float>(channels());
  DeviceBuffer d_beta = unwritten<float>(channels());
  DeviceBuffer d_residual, dy;
};

template <class T>
std::vector<Checked> run(std::int64_t rows, int channels, const Form& form, double offset,
                         std::uint32_t seed = 0) {
  constexpr double kValueError = 2e-5;
  BatchNormProblem<T, float> in;
  Reference expected;
  // For a value within rounding of 0, either side of the ReLU is right, but their gradients differ:
  // draw again if there is such a value.
  do {
    in = draw<T>(rows, channels, offset, seed++);
    expected = reference(in_double(in), form);
  } while (form.relu && expected.nearest_to_zero <= kValueError);

  OnDevice<T> device(in, form);
  device.compute_statistics();
  device.forward();
  device.backward();

  // Float32 arithmetic on numbers of up to about ten times 1/std, which over few rows may be as
  // much as 1/sqrt(epsilon); sums of `rows` such numbers, whose chains in float are at most 8192
  // long and whose errors average out.
  const double rounding = TypeFacts<T>::kRounding;
  constexpr double kArithmetic = 4e-6;
  const double sums = 1e-6 * static_cast<double>(rows) + 1e-5;
  const double steepest = std::max(1.0, *std::ranges::max_element(expected.inv_std));
  // The mean is rounded to float32, so y - mean has the same error in every row. It enters z once;
  // in the gradient's (y - mean) g / std^2 it is multiplied by 1/std twice and by g, up to 5.
  const double large = 1e-7 * std::abs(offset) * steepest;
  const double moved = large * std::sqrt(static_cast<double>(rows));
  // With `sums`, the squares are summed in float32, and over few rows little more than epsilon may
  // be left of variance + epsilon: half the relative error of that is in 1/std, and in all that
  // follows.
  const double cancelled = form.sums ? 0x1p-24 * 9 * steepest * steepest : 0;
  // The sums are of differences from a tile's first row, up to 5 each: n of them in float32 are off
  // by 2^-24 5/3 n^1.5 at one standard deviation; two are allowed here, for the mean.
  const double shifted = 2e-7 * std::sqrt(static_cast<double>(rows));
  std::vector<Checked> out = {
      {"mean", read<float>(device.mean), expected.mean, 2e-7, 2e-6 + shifted},
      {"inv_std", read<float>(device.inv_std), expected.inv_std, 1e-5 + cancelled, 0},
      {"scale", read<float>(device.scale), expected.scale, 1e-5 + cancelled, 1e-7},
      {"running mean", read<float>(device.running_mean), expected.running_mean, 2e-7,
       1e-6 + kMomentum * shifted},
      {"running variance", read<float>(device.running_variance), expected.running_variance, 1e-5,
       0},
      {"z", read<T>(device.z), expected.z, rounding, kValueError + large + 4 * cancelled},
      {"d_gamma", read<float>(device.d_gamma), expected.d_gamma, 1e-5 + cancelled,
       sums + moved + 10 * steepest * cancelled},
      {"d_beta", read<float>(device.d_beta), expected.d_beta, 1e-5, sums},
      {"dy", read<T>(device.dy), expected.dy, rounding,
       10 * kArithmetic * steepest + 5 * large * steepest + 10 * steepest * cancelled},
  };
  if (device.writes_residual()) {
    out.push_back({"d_residual", read<T>(device.d_residual), expected.d_residual, rounding, 1e-6});
  }
  return out;
}

// Two normalisations added in front of a ReLU, in double: relu( batchnorm(y) + batchnorm(s) ).
struct JoinReference {
  Reference y, s;
  std::vector<double> z;
  double nearest_to_zero = std::numeric_limits<double>::infinity();
};

JoinReference join_reference(const BatchNormProblem<double, double>& y,
                             const BatchNormProblem<double, double>& s) {
  // Each of the two normalisations sees the other's output as its residual; its incoming gradient
  // is what the ReLU lets through of dz.
  BatchNormProblem<double, double> with = y, beside = s;
  const Reference alone = reference(s, {.name = "alone"});
  with.residual = alone.z;
  JoinReference out;
  out.y = reference(with, {.name = "y", .relu = true, .residual = true});
  out.z = out.y.z;
  out.nearest_to_zero = out.y.nearest_to_zero;
  beside.dz = out.y.d_residual;
  out.s = reference(beside, {.name = "s"});
  return out;
}

template <class T>
std::vector<Checked> run_join(std::int64_t rows, int channels, std::uint32_t seed) {
  const std::int64_t count = rows * channels;
  constexpr double kValueError = 3e-5;
  BatchNormProblem<T, float> y, s;
  JoinReference expected;
  do {
    y = draw<T>(rows, channels, 0.5, seed++);
    s = draw<T>(rows, channels, -0.25, seed++);
    expected = join_reference(in_double(y), in_double(s));
  } while (expected.nearest_to_zero <= kValueError);

  // The arrays of one of the two normalisations.
  struct Side {
    explicit Side(const BatchNormProblem<T, float>& in)
        : x(DeviceBuffer::copy_of(in.y)),
          gamma(DeviceBuffer::copy_of(in.gamma)),
          beta(DeviceBuffer::copy_of(in.beta)),
          moved_mean(DeviceBuffer::copy_of(in.running_mean)),
          moved_variance(DeviceBuffer::copy_of(in.running_variance)),
          partial(unwritten<double>(ChannelTiles{in.rows, in.channels}.partials(2))),
          mean(unwritten<float>(in.channels)),
          inv_std(unwritten<float>(in.channels)),
          scale(unwritten<float>(in.channels)),
          d_gamma(unwritten<float>(in.channels)),
          d_beta(unwritten<float>(in.channels)),
          factors(unwritten<float>(std::int64_t{3} * in.channels)),
          dx(unwritten<T>(in.rows * in.channels)) {
      launch(BatchNormSums<T>{in.rows, in.channels, x.as<T>(), partial.as<double>()}, nullptr);
      launch(BatchNormStatistics{in.rows,
                                 in.channels,
                                 partial.as<double>(),
                                 {gamma.as<float>(), kEpsilon, kMomentum, moved_mean.as<float>(),
                                  moved_variance.as<float>(), mean.as<float>(), inv_std.as<float>(),
                                  scale.as<float>()}},
             nullptr);
    }
    JoinedSide<T> side() const {
      return {x.as<T>(), mean.as<float>(), scale.as<float>(), beta.as<float>()};
    }
    void finish(std::int64_t n, int c) const {
      launch(BatchNormGradientFactors{n, c, true, partial.as<double>(), inv_std.as<float>(),
                                      scale.as<float>(), d_gamma.as<float>(), d_beta.as<float>(),
                                      factors.as<float>()},
             nullptr);
    }
    DeviceBuffer x, gamma, beta, moved_mean, moved_variance, partial, mean, inv_std, scale, d_gamma,
        d_beta, factors, dx;
  };
  const Side a(y), b(s);
  const DeviceBuffer dz = DeviceBuffer::copy_of(y.dz);
  const DeviceBuffer signs = unwritten<std::uint8_t>(sign_bytes<T>(rows, channels));
  const DeviceBuffer z = unwritten<T>(count);
  launch(BatchNormJoin<T>{rows, channels, a.side(), b.side(), signs.as<std::uint8_t>(), z.as<T>()},
         nullptr);
  const BatchNormJoinBackward<T> in = {rows,
                                       channels,
                                       a.x.template as<T>(),
                                       b.x.template as<T>(),
                                       dz.as<T>(),
                                       signs.as<std::uint8_t>(),
                                       a.mean.template as<float>(),
                                       b.mean.template as<float>()};
  launch(BatchNormJoinGradientSums<T>{in, a.partial.template as<double>(),
                                      b.partial.template as<double>()},
         nullptr);
  a.finish(rows, channels);
  b.finish(rows, channels);
  // The gradient of y overwrites dz.
  launch(BatchNormJoinGradientApply<T>{in, a.factors.template as<float>(),
                                       b.factors.template as<float>(), dz.as<T>(),
                                       b.dx.template as<T>()},
         nullptr);

  // Tolerances as in run(), for two normalisations.
  const double rounding = TypeFacts<T>::kRounding;
  const double sums = 1e-6 * static_cast<double>(rows) + 1e-5;
  std::vector<Checked> out = {{"z", read<T>(z), expected.z, rounding, kValueError}};
  const auto check = [&](const char* name, const Side& side, const Reference& reference,
                         const DeviceBuffer& dx) {
    const double steepest = std::max(1.0, *std::ranges::max_element(reference.inv_std));
    const std::string of = std::string(" of ") + name;
    out.push_back({"d_gamma" + of, read<float>(side.d_gamma), reference.d_gamma, 1e-5, sums});
    out.push_back({"d_beta" + of, read<float>(side.d_beta), reference.d_beta, 1e-5, sums});
    out.push_back({"gradient" + of, read<T>(dx), reference.dy, rounding, 4e-5 * steepest});
  };
  check("y", a, expected.y, dz);
  check("s", b, expected.s, b.dx);
  return out;
}

// ReLU must keep NaN, in the one element that it is in.
template <class T> std::vector<Checked> run_nan() {
  constexpr std::int64_t kRows = 5, kNan = 13;
  constexpr int kChannels = 8;
  const Form form = {.name = "nan", .batch = false, .relu = true, .mask = ReluMask::kFromInput};
  BatchNormProblem<T, float> in = draw<T>(kRows, kChannels, 0.5, 0);
  in.y[at(kNan)] = Element<T>::narrow(std::nanf(""));
  OnDevice<T> device(in, form);
  device.compute_statistics();
  device.forward();
  const DeviceBuffer joined = unwritten<T>(kRows * kChannels);
  const JoinedSide<T> side = {device.y.template as<T>(), device.mean.template as<float>(),
                              device.scale.template as<float>(), device.beta.template as<float>()};
  launch(BatchNormJoin<T>{kRows, kChannels, side, side, nullptr, joined.as<T>()}, nullptr);
  const Reference expected = reference(in_double(in), form);
  std::vector<double> doubled;
  for (const double z : expected.z) doubled.push_back(2 * z);
  const double rounding = TypeFacts<T>::kRounding;
  return {{"z", read<T>(device.z), expected.z, rounding, 2e-5},
          {"joined", read<T>(joined), doubled, rounding, 4e-5}};
}

}  // namespace

void add_batchnorm_cases(std::vector<KernelCase>& cases) {
  struct Shape {
    std::int64_t rows;
    int channels;
  };
  // One row; channels that are no whole packs; more channels than a tile has; several tiles of
  // rows; a last tile that is not full.
  const std::vector<Shape> shapes = {{1, 8}, {7, 3}, {130, 64}, {1001, 72}, {37, 130}, {300, 12}};
  for_types([&]<class T>() {
    for (const Shape& shape : shapes) {
      for (const Form& form : forms()) {
        cases.push_back({fmt::format("batchnorm_{}_{}_{}x{}", form.name, TypeFacts<T>::kName,
                                     shape.rows, shape.channels),
                         [=] { return run<T>(shape.rows, shape.channels, form, 0.5); }});
      }
    }
  });
  for_types([&]<class T>() {
    for (const Shape& shape : shapes) {
      cases.push_back(
          {fmt::format("batchnorm_join_{}_{}x{}", TypeFacts<T>::kName, shape.rows, shape.channels),
           [=] { return run_join<T>(shape.rows, shape.channels, 0); }});
    }
  });
  // Drawn sizes: channels in whole packs and not, few rows and several tiles; the seed is in the
  // name.
  const auto seed = static_cast<std::uint32_t>(random_seed());
  std::mt19937 random(seed);
  for_types([&]<class T>() {
    for (const Form& form : forms()) {
      const int channels = random() % 2 == 0 ? 8 * static_cast<int>(1 + random() % 20)
                                             : static_cast<int>(1 + random() % 150);
      const auto rows = static_cast<std::int64_t>(2 + random() % (random() % 2 == 0 ? 70 : 600));
      cases.push_back({fmt::format("batchnorm_{}_{}_{}x{}_seed{}", form.name, TypeFacts<T>::kName,
                                   rows, channels, seed),
                       [=] { return run<T>(rows, channels, form, 0.5, seed); }});
      cases.push_back({fmt::format("batchnorm_join_{}_{}x{}_seed{}_{}", TypeFacts<T>::kName, rows,
                                   channels, seed, form.name),
                       [=] { return run_join<T>(rows, channels, seed); }});
    }
  });
  // Tiles of more than the fewest rows, as in training: 1024 tiles of 137. With a ReLU one channel
  // alone: of more values one is always near 0, and would be drawn again.
  constexpr std::int64_t kManyRows = 140'003;
  for (const Form& form : forms()) {
    if (form.sums || !form.wanted) continue;
    cases.push_back({"batchnorm_large_tiles_" + form.name,
                     [=] { return run<float>(kManyRows, form.relu ? 1 : 4, form, 0.25); }});
  }
  cases.push_back({"batchnorm_join_large_tiles", [] { return run_join<float>(kManyRows, 1, 0); }});
  for_types([&]<class T>() {
    cases.push_back(
        {fmt::format("batchnorm_nan_{}", TypeFacts<T>::kName), [] { return run_nan<T>(); }});
  });
  // Summed in float, the squares of such numbers would leave no digit of the variance.
  cases.push_back(
      {"batchnorm_far_from_zero", [] { return run<float>(700, 24, forms()[0], 3000); }});
}

}  // namespace rk
