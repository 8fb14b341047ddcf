// Element-wise kernels, the head, the input.
#include "engine/base/integers.h"
#include "kernels/cuda/step_kernels.h"
#include "tests/kernel_cases/kernel_case.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>

#include <random>

namespace rk {
namespace {

template <class T> std::vector<Checked> elementwise(std::int64_t count) {
  MadeUp made_up(23);
  auto a = made_up.normals<T>(count);
  const auto b = made_up.normals<T>(count);
  const auto dy = made_up.normals<T>(count);
  a[0] = Element<T>::narrow(std::nanf(""));
  if (count > 1) a[1] = Element<T>::narrow(0);  // where ReLU has no gradient
  const DeviceBuffer device_a = DeviceBuffer::copy_of(a);
  const DeviceBuffer device_b = DeviceBuffer::copy_of(b);
  const DeviceBuffer device_dy = DeviceBuffer::copy_of(dy);
  const DeviceBuffer copied = unwritten<T>(count);
  const DeviceBuffer added_to = DeviceBuffer::copy_of(b);
  const DeviceBuffer sum = unwritten<T>(count);
  const DeviceBuffer relu = unwritten<T>(count);
  const DeviceBuffer dx = unwritten<T>(count);
  const DeviceBuffer dx_added = DeviceBuffer::copy_of(b);
  launch(CopyOrAdd<T>{count, device_a.as<T>(), copied.as<T>(), false}, nullptr);
  launch(CopyOrAdd<T>{count, device_a.as<T>(), added_to.as<T>(), true}, nullptr);
  launch(AddTensors<T>{count, device_a.as<T>(), device_b.as<T>(), sum.as<T>()}, nullptr);
  launch(Relu<T>{count, device_a.as<T>(), relu.as<T>()}, nullptr);
  launch(ReluGradient<T>{count, device_a.as<T>(), device_dy.as<T>(), dx.as<T>(), false}, nullptr);
  launch(ReluGradient<T>{count, device_a.as<T>(), device_dy.as<T>(), dx_added.as<T>(), true},
         nullptr);
  const auto wide_a = widened(a);
  const auto wide_b = widened(b);
  const auto wide_dy = widened(dy);
  std::vector<double> sums, relus, gradients, added;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = wide_a[i];
    sums.push_back(x + wide_b[i]);
    relus.push_back(x <= 0 ? 0 : x);  // NaN stays
    gradients.push_back(x > 0 ? wide_dy[i] : 0);
    added.push_back(wide_b[i] + gradients.back());
  }
  const double rounding = TypeFacts<T>::kRounding;
  return {{"copy", read<T>(copied), widened(a), 0, 0},
          {"add to", read<T>(added_to), sums, rounding, 0},
          {"add", read<T>(sum), sums, rounding, 0},
          {"relu", read<T>(relu), relus, 0, 0},
          {"relu gradient", read<T>(dx), gradients, 0, 0},
          {"relu gradient, added", read<T>(dx_added), added, rounding, 0}};
}

// A difference that is NaN must stay.
template <class T> std::vector<Checked> difference(std::int64_t count) {
  MadeUp made_up(29);
  auto a = made_up.normals<T>(count);
  const auto b = made_up.normals<T>(count);
  const SquaredDifferences<T> kernel{.count = count};
  const auto run = [&] {
    const DeviceBuffer device_a = DeviceBuffer::copy_of(a);
    const DeviceBuffer device_b = DeviceBuffer::copy_of(b);
    const DeviceBuffer partial = unwritten<double>(2 * kernel.blocks());
    launch(SquaredDifferences<T>{count, device_a.as<T>(), device_b.as<T>(), partial.as<double>()},
           nullptr);
    std::vector<double> sums(2, 0.0);
    const std::vector<double> partials = read<double>(partial);
    for (std::size_t i = 0; i < partials.size(); ++i) sums[i % 2] += partials[i];
    return sums;
  };
  const std::vector<double> finite = run();
  const auto wide_a = widened(a);
  a[0] = Element<T>::narrow(std::nanf(""));
  const std::vector<double> unknown = run();
  const auto wide_b = widened(b);
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(wide_a[i] - wide_b[i], 2);
    size += std::pow(wide_b[i], 2);
  }
  // Sums of up to a million squares in double, in another order.
  return {{"squared differences", finite, {apart, size}, 1e-12, 0},
          {"not a number", {std::isnan(unknown[0]) ? 1.0 : 0.0}, {1.0}, 0, 0}};
}

std::vector<Checked> scale(std::int64_t count) {
  const auto values = MadeUp(31).normals<float>(count);
  const DeviceBuffer device_values = DeviceBuffer::copy_of(values);
  const DeviceBuffer factor = DeviceBuffer::copy_of(std::vector<float>{1024.0F});
  launch(Scale{count, factor.as<float>(), device_values.as<float>()}, nullptr);
  auto expected = widened(values);
  for (double& x : expected) x *= 1024;
  return {{"scaled", read<float>(device_values), expected, 0, 0}};
}

std::vector<Checked> head(int rows, int dim) {
  MadeUp made_up(37);
  constexpr double kEpsilon = 1e-3;
  const std::int64_t count = static_cast<std::int64_t>(rows) * dim;
  auto x = made_up.normals<float>(count);
  for (int d = 0; d < dim; ++d) x[at(d)] *= 1e-6F;  // shorter than epsilon
  const auto dy = made_up.normals<float>(count);
  const auto held = made_up.normals<float>(count);
  std::vector<double> norms, y, dx, dx_added;
  for (int r = 0; r < rows; ++r) {
    double squares = 0;
    double dot = 0;
    for (int d = 0; d < dim; ++d) {
      const auto value = static_cast<double>(x[at(static_cast<std::int64_t>(r) * dim + d)]);
      squares += value * value;
      dot += value * static_cast<double>(dy[at(static_cast<std::int64_t>(r) * dim + d)]);
    }
    norms.push_back(std::sqrt(squares));
    const bool constant = norms.back() < kEpsilon;
    const double length = std::max(norms.back(), kEpsilon);
    for (int d = 0; d < dim; ++d) {
      const std::size_t i = at(static_cast<std::int64_t>(r) * dim + d);
      const auto value = static_cast<double>(x[i]);
      const auto g = static_cast<double>(dy[i]);
      y.push_back(value / length);
      dx.push_back((g - (constant ? 0 : value * dot / (length * length))) / length);
      dx_added.push_back(static_cast<double>(held[i]) + dx.back());
    }
  }
  const DeviceBuffer device_x = DeviceBuffer::copy_of(x);
  const DeviceBuffer device_dy = DeviceBuffer::copy_of(dy);
  const DeviceBuffer got_norms = unwritten<double>(rows);
  const DeviceBuffer got_y = unwritten<float>(count);
  const DeviceBuffer got_dx = unwritten<float>(count);
  const DeviceBuffer got_added = DeviceBuffer::copy_of(held);
  launch(
      L2Norm{rows, dim, kEpsilon, device_x.as<float>(), got_y.as<float>(), got_norms.as<double>()},
      nullptr);
  const L2NormGradient gradient{rows,
                                dim,
                                kEpsilon,
                                device_x.as<float>(),
                                got_norms.as<double>(),
                                device_dy.as<float>(),
                                got_dx.as<float>(),
                                false};
  launch(gradient, nullptr);
  L2NormGradient added = gradient;
  added.dx = got_added.as<float>();
  added.accumulate = true;
  launch(added, nullptr);
  // Sums are in double, so one rounding to float32 is left (two when accumulating).
  constexpr double kOnce = 0x1p-24 * 1.001;
  return {{"norms", read<double>(got_norms), norms, 1e-14, 0},
          {"y", read<float>(got_y), y, kOnce, 0},
          {"dx", read<float>(got_dx), dx, kOnce, 1e-13},
          {"dx, added", read<float>(got_added), dx_added, 2 * kOnce, 1e-4}};
}

std::vector<Checked> matrix_passes(int rows, int columns) {
  MadeUp made_up(43);
  const auto values = made_up.normals<float>(static_cast<std::int64_t>(rows) * columns);
  std::vector<double> sums(at(columns), 0.0), filled(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[i % sums.size()] += static_cast<double>(values[i]);
    filled[i] = static_cast<double>(values[i % sums.size()]);  // the first row, in every row
  }
  const DeviceBuffer device_values = DeviceBuffer::copy_of(values);
  const DeviceBuffer got = unwritten<float>(columns);
  const DeviceBuffer got_wide = unwritten<double>(columns);
  const DeviceBuffer got_filled = unwritten<float>(static_cast<std::int64_t>(rows) * columns);
  const auto* from = device_values.as<float>();
  launch(ColumnSums<float, float>{rows, columns, from, got.as<float>()}, nullptr);
  launch(ColumnSums<float, double>{rows, columns, from, got_wide.as<double>()}, nullptr);
  launch(FillRows{rows, columns, from, got_filled.as<float>()}, nullptr);
  // Summed in double, rounded to float32 once or not at all.
  return {{"sums", read<float>(got), sums, 0x1p-24 * 1.001, 1e-13},
          {"sums in double", read<double>(got_wide), sums, 1e-14, 1e-13},
          {"filled", read<float>(got_filled), filled, 0, 0}};
}

std::vector<Checked> add_transpose(int rows, int gap) {
  MadeUp made_up(47);
  const std::int64_t stride = rows + gap;
  const auto values = made_up.normals<float>(rows * stride);
  std::vector<double> sums;
  for (std::int64_t i = 0; i < rows * stride; ++i) {
    const std::int64_t row = i / stride, column = i % stride;
    const double held = static_cast<double>(values[at(i)]);
    const bool inside = column < rows;
    sums.push_back(held + (inside ? static_cast<double>(values[at(column * stride + row)]) : 0));
  }
  const DeviceBuffer matrix = DeviceBuffer::copy_of(values);
  launch(AddTranspose{matrix.as<float>(), stride, rows}, nullptr);
  return {{"sums", read<float>(matrix), sums, 0x1p-24 * 1.001, 0}};
}

template <class T> std::vector<Checked> input(int side, int channels) {
  constexpr int kImages = 3;
  MadeUp made_up(41);
  std::vector<std::uint8_t> pixels(at(3) * at(kImages) * at(side) * at(side));
  for (std::uint8_t& level : pixels) {
    level = static_cast<std::uint8_t>(127.5 * (made_up.uniform() + 1));
  }
  const auto table = made_up.normals<float>(std::int64_t{3} * 256);
  std::vector<double> expected;
  for (int n = 0; n < kImages; ++n) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int pixel = ((n * side + y) * side + x) * 3;
        for (int c = 0; c < channels; ++c) {
          const int level = c < 3 ? pixels[at(pixel + c)] : 0;
          expected.push_back(c < 3 ? static_cast<double>(table[at(c * 256 + level)]) : 0);
        }
      }
    }
  }
  const DeviceBuffer device_pixels = DeviceBuffer::copy_of(pixels);
  const DeviceBuffer device_table = DeviceBuffer::copy_of(table);
  const DeviceBuffer out =
      unwritten<T>(static_cast<std::int64_t>(kImages) * side * side * channels);
  launch(FillInput<T>{kImages, side, channels, device_pixels.as<std::uint8_t>(),
                      device_table.as<float>(), out.as<T>()},
         nullptr);
  const double rounding = std::is_same_v<T, float> ? 0 : TypeFacts<T>::kRounding;
  return {{"input", read<T>(out), expected, rounding, 1e-7 * rounding}};
}

// The input in cells of cell x cell pixels, with zeros around them, by the definition.
template <class T>
std::vector<Checked> input_in_cells(int side, int cell, int padding_y, int padding_x,
                                    int channels) {
  constexpr int kImages = 3;
  const int rows = (side + 2 * padding_y) / cell + 1, columns = (side + padding_x) / cell;
  MadeUp made_up(47);
  std::vector<std::uint8_t> pixels(at(3) * at(kImages) * at(side) * at(side));
  for (std::uint8_t& level : pixels) {
    level = static_cast<std::uint8_t>(127.5 * (made_up.uniform() + 1));
  }
  const auto table = made_up.normals<float>(std::int64_t{3} * 256);
  const std::int64_t each = static_cast<std::int64_t>(rows) * columns * channels;
  std::vector<double> expected(at(kImages * each), 0.0);
  for (int n = 0; n < kImages; ++n) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int i = (y + padding_y) / cell, a = (y + padding_y) % cell;
        const int j = (x + padding_x) / cell, b = (x + padding_x) % cell;
        if (i >= rows || j >= columns) continue;
        const int pixel = ((n * side + y) * side + x) * 3;
        for (int c = 0; c < 3; ++c) {
          const std::int64_t place = n * each +
                                     ((static_cast<std::int64_t>(i) * columns) + j) * channels +
                                     (a * cell + b) * 3 + c;
          expected[at(place)] = static_cast<double>(table[at(c * 256 + pixels[at(pixel + c)])]);
        }
      }
    }
  }
  const DeviceBuffer device_pixels = DeviceBuffer::copy_of(pixels);
  const DeviceBuffer device_table = DeviceBuffer::copy_of(table);
  const DeviceBuffer out = unwritten<T>(kImages * each);
  launch(FillInput<T>{.batch = kImages,
                      .side = side,
                      .padded_channels = channels,
                      .pixels = device_pixels.as<std::uint8_t>(),
                      .table = device_table.as<float>(),
                      .out = out.as<T>(),
                      .cells = {cell, rows, columns, padding_y, padding_x}},
         nullptr);
  const double rounding = std::is_same_v<T, float> ? 0 : TypeFacts<T>::kRounding;
  return {{"cells", read<T>(out), expected, rounding, 1e-7 * rounding}};
}

// The seed is in the name.
void add_drawn_inputs(std::vector<KernelCase>& cases) {
  const auto seed = static_cast<std::uint32_t>(random_seed());
  std::mt19937 random(seed);
  const auto up_to = [&](int most) {
    return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for_types([&]<class T>() {
    for (int i = 0; i < 6; ++i) {
      const std::string of = fmt::format("{}_seed{}_{}", TypeFacts<T>::kName, seed, i);
      const int side = up_to(40), channels = 2 + up_to(6);
      cases.push_back({"input_" + of, [=] { return input<T>(side, channels); }});
      const int cell = 1 + up_to(2), padding_y = up_to(5) - 1, padding_x = up_to(5) - 1;
      const int stored = (3 * cell * cell + 7) / 8 * 8;
      cases.push_back({"input_in_cells_" + of, [=] {
                         return input_in_cells<T>(side + 3, cell, padding_y, padding_x, stored);
                       }});
      const int count = up_to(20'000);
      cases.push_back({"elementwise_" + of, [=] { return elementwise<T>(count); }});
    }
  });
}

}  // namespace

void add_step_cases(std::vector<KernelCase>& cases) {
  for_types([&]<class T>() {
    const std::string type = TypeFacts<T>::kName;
    for (const int count : {1, 8, 4099, 12000}) {
      cases.push_back(
          {fmt::format("elementwise_{}_{}", type, count), [=] { return elementwise<T>(count); }});
    }
    for (const int count : {5, 4099, 12000}) {
      cases.push_back(
          {fmt::format("difference_{}_{}", type, count), [=] { return difference<T>(count); }});
    }
    for (const int channels : {3, 4, 5, 8}) {
      cases.push_back({fmt::format("input_{}_{}_channels", type, channels),
                       [=] { return input<T>(9, channels); }});
    }
    cases.push_back({"input_whole_" + type, [] { return input<T>(6, 4); }});
    cases.push_back({"input_in_cells_" + type, [] { return input_in_cells<T>(9, 2, 3, 3, 16); }});
    cases.push_back(
        {"input_in_wide_cells_" + type, [] { return input_in_cells<T>(1000, 2, 0, 1, 16); }});
    cases.push_back(
        {"input_in_cells_of_9_" + type, [] { return input_in_cells<T>(10, 3, 2, 0, 32); }});
  });
  for (const auto& [rows, columns] : {std::pair{1, 1}, std::pair{33, 130}, std::pair{700, 9}}) {
    cases.push_back({fmt::format("matrix_passes_{}x{}", rows, columns),
                     [rows = rows, columns = columns] { return matrix_passes(rows, columns); }});
  }
  for (const int rows : {1, 32, 33, 200}) {
    cases.push_back(
        {fmt::format("add_transpose_{}", rows), [rows] { return add_transpose(rows, rows % 5); }});
  }
  // More elements than the most blocks take at once, each block 4096.
  cases.push_back({"difference_of_many", [] { return difference<float>(1024 * 4096 + 5001); }});
  add_drawn_inputs(cases);
  cases.push_back({"scale", [] { return scale(4101); }});
  cases.push_back({"head_1x1", [] { return head(1, 1); }});
  cases.push_back({"head_33x130", [] { return head(33, 130); }});
  cases.push_back({"head_7x513", [] { return head(7, 513); }});
}

}  // namespace rk
