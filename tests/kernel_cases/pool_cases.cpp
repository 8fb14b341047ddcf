// All poolings, with ties and NaN, and the copy of channels that concatenates.
#include "kernels/cuda/convolution_kernels.h"
#include "tests/kernel_cases/kernel_case.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Few different values, so that most windows have ties; NaN here and there.
template <class T> std::vector<T> tied(MadeUp& made_up, std::int64_t count, bool with_nan) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = with_nan && i % 23 == 5 ? kNan : std::floor(4 * made_up.uniform()) / 4;
    out.push_back(Element<T>::narrow(static_cast<float>(value)));
  }
  return out;
}

// y or dy as a range of a tensor with more channels; the other channels hold `gap`.
template <class T>
std::vector<T> spread(const std::vector<T>& dense, const PoolShape& shape, T gap) {
  const std::int64_t rows = std::ssize(dense) / shape.channels;
  std::vector<T> out(at(rows * shape.y_stride), gap);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(dense.begin() + r * shape.channels, shape.channels,
                out.begin() + r * shape.y_stride);
  }
  return out;
}
template <class T> T not_a_number() { return Element<T>::narrow(static_cast<float>(kNan)); }

template <class T>
std::vector<Checked> max_pool(const PoolShape& shape, bool with_nan, bool accumulate,
                              bool of_relu = false) {
  MadeUp made_up(17);
  const std::int64_t in_count =
      static_cast<std::int64_t>(shape.batch) * shape.height * shape.width * shape.channels;
  const std::int64_t out_count =
      static_cast<std::int64_t>(shape.batch) * shape.out_height * shape.out_width * shape.channels;
  const auto x = tied<T>(made_up, in_count, with_nan);
  const auto dy = made_up.normals<T>(out_count);
  const auto held = made_up.normals<T>(in_count);

  const auto values = widened(x);
  std::vector<double> y, choice;
  std::vector<double> dx(at(in_count), 0.0);
  if (accumulate) dx = widened(held);
  const auto gradients = widened(dy);
  for (std::int64_t i = 0; i < out_count; ++i) {
    const std::int64_t c = i % shape.channels;
    const std::int64_t ow = i / shape.channels % shape.out_width;
    const std::int64_t oh = i / shape.channels / shape.out_width % shape.out_height;
    const std::int64_t n = i / shape.channels / shape.out_width / shape.out_height;
    double best = 0;
    std::int64_t winner = -1;
    std::int64_t place = 0;
    for (int kh = 0; kh < shape.kernel[0]; ++kh) {
      for (int kw = 0; kw < shape.kernel[1]; ++kw) {
        const std::int64_t h = oh * shape.stride[0] + kh - shape.padding[0];
        const std::int64_t w = ow * shape.stride[1] + kw - shape.padding[1];
        if (h < 0 || h >= shape.height || w < 0 || w >= shape.width) continue;
        const std::int64_t from = ((n * shape.height + h) * shape.width + w) * shape.channels + c;
        if (winner >= 0 && !(values[at(from)] > best)) continue;
        best = values[at(from)];
        winner = kh * shape.kernel[1] + kw;
        place = from;
      }
    }
    y.push_back(best);
    const bool taken = !of_relu || best > 0;
    choice.push_back(taken ? static_cast<double>(winner) : double{MaxPool<T>::kNoPixel});
    if (taken) dx[at(place)] += gradients[at(i)];
  }

  const DeviceBuffer device_x = DeviceBuffer::copy_of(x);
  const DeviceBuffer device_dy = DeviceBuffer::copy_of(spread(dy, shape, not_a_number<T>()));
  y = spread(y, shape, kNan);
  const DeviceBuffer got_y = unwritten<T>(std::ssize(y));
  const DeviceBuffer got_alone = unwritten<T>(std::ssize(y));
  const DeviceBuffer got_choice = unwritten<std::uint8_t>(out_count);
  const DeviceBuffer got_dx = accumulate ? DeviceBuffer::copy_of(held) : unwritten<T>(in_count);
  launch(MaxPool<T>{shape, device_x.as<T>(), got_y.as<T>(), got_choice.as<std::uint8_t>(), of_relu},
         nullptr);
  launch(MaxPool<T>{shape, device_x.as<T>(), got_alone.as<T>(), nullptr}, nullptr);
  launch(MaxPoolGradient<T>{shape, got_choice.as<std::uint8_t>(), device_dy.as<T>(), got_dx.as<T>(),
                            accumulate},
         nullptr);
  return {{"y", read<T>(got_y), y, 0, 0},
          {"y without choice", read<T>(got_alone), y, 0, 0},
          {"choice", read<std::uint8_t>(got_choice), choice, 0, 0},
          // Up to nine gradients of one pixel are added in float32.
          {"dx", read<T>(got_dx), dx, TypeFacts<T>::kRounding, 2e-6}};
}

template <class T> std::vector<Checked> average_pool(const PoolShape& shape, bool accumulate) {
  MadeUp made_up(23);
  const std::int64_t in_count =
      static_cast<std::int64_t>(shape.batch) * shape.height * shape.width * shape.channels;
  const std::int64_t out_count =
      static_cast<std::int64_t>(shape.batch) * shape.out_height * shape.out_width * shape.channels;
  const auto x = made_up.normals<T>(in_count);
  const auto dy = made_up.normals<T>(out_count);
  const auto held = made_up.normals<T>(in_count);
  const auto values = widened(x), gradients = widened(dy);
  std::vector<double> y;
  std::vector<double> dx(at(in_count), 0.0);
  if (accumulate) dx = widened(held);
  for (std::int64_t i = 0; i < out_count; ++i) {
    const std::int64_t c = i % shape.channels;
    const std::int64_t ow = i / shape.channels % shape.out_width;
    const std::int64_t oh = i / shape.channels / shape.out_width % shape.out_height;
    const std::int64_t n = i / shape.channels / shape.out_width / shape.out_height;
    double sum = 0;
    std::vector<std::size_t> inside;
    int size = 0;  // includes padding
    for (int kh = 0; kh < shape.kernel[0]; ++kh) {
      for (int kw = 0; kw < shape.kernel[1]; ++kw) {
        const std::int64_t h = oh * shape.stride[0] + kh - shape.padding[0];
        const std::int64_t w = ow * shape.stride[1] + kw - shape.padding[1];
        if (h >= shape.height + shape.padding[0] || w >= shape.width + shape.padding[1]) continue;
        ++size;
        if (h < 0 || h >= shape.height || w < 0 || w >= shape.width) continue;
        inside.push_back(at(((n * shape.height + h) * shape.width + w) * shape.channels + c));
        sum += values[inside.back()];
      }
    }
    y.push_back(sum / size);
    for (const std::size_t place : inside) dx[place] += gradients[at(i)] / size;
  }
  const DeviceBuffer device_x = DeviceBuffer::copy_of(x);
  const DeviceBuffer device_dy = DeviceBuffer::copy_of(spread(dy, shape, not_a_number<T>()));
  y = spread(y, shape, kNan);
  const DeviceBuffer got_y = unwritten<T>(std::ssize(y));
  const DeviceBuffer got_dx = accumulate ? DeviceBuffer::copy_of(held) : unwritten<T>(in_count);
  launch(AveragePool<T>{shape, device_x.as<T>(), got_y.as<T>()}, nullptr);
  launch(AveragePoolGradient<T>{shape, device_dy.as<T>(), got_dx.as<T>(), accumulate}, nullptr);
  // Up to nine numbers are added in float32.
  return {{"y", read<T>(got_y), y, TypeFacts<T>::kRounding, 2e-6},
          {"dx", read<T>(got_dx), dx, TypeFacts<T>::kRounding, 2e-6}};
}

// Copies the `channels` of a tensor to channels `first` and up of a tensor with `all`.
template <class T>
std::vector<Checked> copy_channels(int rows, int channels, int first, int all, bool accumulate) {
  MadeUp made_up(29);
  const auto x = made_up.normals<T>(static_cast<std::int64_t>(rows) * channels);
  const auto held = made_up.normals<T>(static_cast<std::int64_t>(rows) * all);
  const auto values = widened(x);
  std::vector<double> y = widened(held);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < channels; ++c) {
      double& place = y[at(static_cast<std::int64_t>(r) * all + first + c)];
      place = values[at(static_cast<std::int64_t>(r) * channels + c)] + (accumulate ? place : 0.0);
    }
  }
  const DeviceBuffer device_x = DeviceBuffer::copy_of(x);
  const DeviceBuffer got = DeviceBuffer::copy_of(held);
  launch(CopyChannels<T>{rows, channels, device_x.as<T>(), channels, got.as<T>() + first, all,
                         accumulate},
         nullptr);
  return {{"y", read<T>(got), y, accumulate ? TypeFacts<T>::kRounding : 0.0, 0}};
}

template <class T>
std::vector<Checked> global_pool(int batch, int rows, int channels, PoolKind kind, double p,
                                 bool with_nan, bool accumulate) {
  MadeUp made_up(19);
  const double epsilon = 1e-2;
  const std::int64_t count = static_cast<std::int64_t>(batch) * rows * channels;
  const std::int64_t pooled = static_cast<std::int64_t>(batch) * channels;
  const auto x = tied<T>(made_up, count, with_nan);
  const auto dy = made_up.normals<float>(pooled);
  const auto held = made_up.normals<T>(count);
  const auto values = widened(x);
  const auto wide_held = widened(held);
  std::vector<double> y, best;
  std::vector<double> dx(at(count), 0.0);
  for (std::int64_t i = 0; i < pooled; ++i) {
    const auto index = [&](std::int64_t r) {
      return at((i / channels * rows + r) * channels + i % channels);
    };
    double sum = 0;
    std::int64_t winner = 0;
    for (int r = 0; r < rows; ++r) {
      const double value = values[index(r)];
      if (value > values[index(winner)]) winner = r;
      sum += kind == PoolKind::kGem ? std::pow(value < epsilon ? epsilon : value, p) : value;
    }
    const double mean = sum / rows;
    best.push_back(static_cast<double>(winner));
    if (kind == PoolKind::kMax) y.push_back(values[index(winner)]);
    if (kind == PoolKind::kAverage) y.push_back(mean);
    if (kind == PoolKind::kGem) y.push_back(std::pow(mean, 1 / p));
    for (int r = 0; r < rows; ++r) {
      double g = static_cast<double>(dy[at(i)]);
      if (kind == PoolKind::kMax) g = r == winner ? g : 0;
      if (kind == PoolKind::kAverage) g /= rows;
      if (kind == PoolKind::kGem) {
        const double value = values[index(r)];
        g = value < epsilon ? 0 : g / rows * std::pow(y.back(), 1 - p) * std::pow(value, p - 1);
      }
      dx[index(r)] = accumulate ? wide_held[index(r)] + g : g;
    }
  }
  const DeviceBuffer device_x = DeviceBuffer::copy_of(x);
  const DeviceBuffer device_dy = DeviceBuffer::copy_of(dy);
  const DeviceBuffer got_best = unwritten<std::int32_t>(pooled);
  const DeviceBuffer got_y = unwritten<float>(pooled);
  const DeviceBuffer got_dx = accumulate ? DeviceBuffer::copy_of(held) : unwritten<T>(count);
  launch(GlobalPool<T>{batch, rows, channels, kind, static_cast<float>(p),
                       static_cast<float>(epsilon), device_x.as<T>(),
                       kind == PoolKind::kMax ? got_best.as<std::int32_t>() : nullptr,
                       got_y.as<float>()},
         nullptr);
  launch(GlobalPoolGradient<T>{batch, rows, channels, kind, static_cast<float>(p),
                               static_cast<float>(epsilon), device_x.as<T>(), got_y.as<float>(),
                               got_best.as<std::int32_t>(), device_dy.as<float>(), got_dx.as<T>(),
                               accumulate},
         nullptr);
  // Powers in float32: a few units in the last place, more for a p that needs a logarithm; the
  // error of y is raised to p - 1.
  const double powers = kind == PoolKind::kGem ? 1e-5 + 2e-6 * p : 1e-5;
  std::vector<Checked> out = {{"y", read<float>(got_y), y, 2e-6, 1e-6},
                              {"dx", read<T>(got_dx), dx, TypeFacts<T>::kRounding + powers, 1e-6}};
  if (kind == PoolKind::kMax) {
    out.push_back({"best", read<std::int32_t>(got_best), best, 0, 0});
  }
  return out;
}

// Strides of two along both axes, which have a body of their own, as often as others.
PoolShape drawn_shape(std::mt19937& random) {
  const auto up_to = [&](int most) {
    return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  };
  PoolShape shape;
  shape.batch = up_to(2);
  shape.channels = random() % 2 == 0 ? 8 * up_to(6) : up_to(30);
  const bool halves = random() % 2 == 0;
  int size[2], out[2];
  for (int axis = 0; axis < 2; ++axis) {
    shape.kernel[axis] = up_to(4);
    shape.stride[axis] = halves ? 2 : up_to(3);
    shape.padding[axis] =
        static_cast<int>(random() % static_cast<unsigned>(shape.kernel[axis] / 2 + 1));
    size[axis] = shape.kernel[axis] + up_to(9);
    const int positions = size[axis] + 2 * shape.padding[axis] - shape.kernel[axis];
    out[axis] = positions / shape.stride[axis] + 1;
  }
  shape.height = size[0], shape.width = size[1];
  shape.out_height = out[0], shape.out_width = out[1];
  return shape;
}

}  // namespace

void add_pool_cases(std::vector<KernelCase>& cases) {
  struct Window {
    std::string name;
    PoolShape shape;
  };
  std::vector<Window> windows = {
      {"resnet", {2, 16, 11, 8, 6, 4, {3, 3}, {2, 2}, {1, 1}}},
      {"odd_channels", {2, 3, 7, 9, 4, 5, {3, 3}, {2, 2}, {1, 1}}},
      {"ceil", {1, 8, 6, 6, 3, 3, {3, 3}, {2, 2}, {0, 0}}},  // the last windows end outside
      {"overlapping", {1, 24, 5, 5, 5, 5, {3, 3}, {1, 1}, {1, 1}}},
      {"gaps", {2, 8, 8, 9, 3, 3, {2, 2}, {3, 3}, {0, 0}}},  // pixels in no window
      {"unequal", {1, 4, 9, 4, 4, 4, {4, 1}, {2, 1}, {1, 0}}},
      {"one_pixel", {1, 8, 1, 1, 1, 1, {2, 2}, {1, 1}, {1, 1}}},
      {"more_packs_than_threads", {1, 2072, 3, 4, 2, 2, {3, 3}, {2, 2}, {1, 1}}},
  };
  const auto seed = static_cast<std::uint32_t>(random_seed());
  std::mt19937 random(seed);
  for (int i = 0; i < 8; ++i) {
    windows.push_back({fmt::format("drawn_seed{}_{}", seed, i), drawn_shape(random)});
  }
  for_types([&]<class T>() {
    for (const Window& window : windows) {
      // y alone, and among other tensors' channels, in whole packs (16) and not (5).
      for (const int others : {0, 16, 5}) {
        for (const bool accumulate : {false, true}) {
          PoolShape shape = window.shape;
          shape.y_stride = shape.channels + others;
          const std::string name =
              fmt::format("{}_in_{}_{}_{}", window.name, shape.y_stride, TypeFacts<T>::kName,
                          accumulate ? "accumulate" : "overwrite");
          for (const bool with_nan : {false, true}) {
            const std::string of = with_nan ? "nan_" + name : name;
            cases.push_back(
                {"max_pool_" + of, [=] { return max_pool<T>(shape, with_nan, accumulate); }});
            cases.push_back({"max_pool_of_relu_" + of,
                             [=] { return max_pool<T>(shape, with_nan, accumulate, true); }});
          }
          cases.push_back(
              {"average_pool_" + name, [=] { return average_pool<T>(shape, accumulate); }});
        }
      }
    }
    struct Range {
      int rows, channels, first, all;
    };
    for (const Range& range :
         {Range{70, 16, 32, 64}, Range{331, 24, 8, 40}, Range{5, 7, 3, 10}, Range{9, 16, 4, 48}}) {
      for (const bool accumulate : {false, true}) {
        cases.push_back({fmt::format("copy_channels_{}_of_{}_{}_{}", range.channels, range.all,
                                     TypeFacts<T>::kName, accumulate ? "accumulate" : "overwrite"),
                         [=] {
                           return copy_channels<T>(range.rows, range.channels, range.first,
                                                   range.all, accumulate);
                         }});
      }
    }
    for (const auto& shape : {std::pair{49, 64}, std::pair{1, 3}, std::pair{50, 136}}) {
      const int rows = shape.first;
      const int channels = shape.second;
      const auto add = [&](const char* name, PoolKind kind, double p, bool with_nan) {
        for (const bool accumulate : {false, true}) {
          cases.push_back(
              {fmt::format("global_pool_{}_{}_{}x{}_{}", name, TypeFacts<T>::kName, rows, channels,
                           accumulate ? "accumulate" : "overwrite"),
               [=] { return global_pool<T>(3, rows, channels, kind, p, with_nan, accumulate); }});
        }
      };
      add("average", PoolKind::kAverage, 3, false);
      add("max", PoolKind::kMax, 3, false);
      add("max_nan", PoolKind::kMax, 3, true);
      add("gem", PoolKind::kGem, 3, false);
      add("gem_2_5", PoolKind::kGem, 2.5, false);
      add("gem_40", PoolKind::kGem, 40, false);  // 0.01^40 is below float's range
    }
  });
}

}  // namespace rk
