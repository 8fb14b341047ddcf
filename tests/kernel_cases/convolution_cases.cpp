// The kernels around a convolution: the folded normalisation, casts of weights, masked sums.
#include "kernels/cuda/convolution_kernels.h"
#include "tests/kernel_cases/kernel_case.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>

#include <random>

namespace rk {
namespace {

constexpr double kBatchNormEpsilon = 1e-3;

// For each stored element, the index of its dense element; -1 for padding, which is 0.
std::vector<std::int64_t> stored_order(const FilterShape& shape) {
  const int columns = shape.cell == 1 ? shape.taps : shape.columns, rows = shape.taps / columns;
  std::vector<std::int64_t> order;
  for (int o = 0; o < shape.outputs; ++o) {
    for (int y = 0; y < rows; y += shape.cell) {
      for (int x = 0; x < columns; x += shape.cell) {
        const std::size_t end = order.size() + at(shape.padded_inputs);
        for (int a = y; a < y + shape.cell; ++a) {
          for (int b = x; b < x + shape.cell; ++b) {
            for (int i = 0; i < shape.inputs; ++i) {
              const std::int64_t tap = (static_cast<std::int64_t>(o) * rows + a) * columns + b;
              order.push_back(a < rows && b < columns ? tap * shape.inputs + i : -1);
            }
          }
        }
        order.resize(end, -1);
      }
    }
  }
  return order;
}

std::vector<double> stored(const std::vector<double>& dense, const FilterShape& shape) {
  std::vector<double> out;
  for (const std::int64_t i : stored_order(shape)) out.push_back(i < 0 ? 0.0 : dense[at(i)]);
  return out;
}
std::vector<double> dense(const std::vector<double>& stored, const FilterShape& shape) {
  std::vector<double> out(at(shape.dense()));
  const std::vector<std::int64_t> order = stored_order(shape);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= 0) out[at(order[i])] = stored[i];
  }
  return out;
}

// All of `items` in one launch.
template <class Kernel> void run_over(const std::vector<typename Kernel::Item>& items) {
  std::vector<FilterPart> parts;
  for (std::size_t n = 0; n < items.size(); ++n) {
    Kernel::for_each_part(static_cast<int>(n), items[n].shape,
                          [&](const FilterPart& part) { parts.push_back(part); });
  }
  const DeviceBuffer device_items = DeviceBuffer::copy_of(items);
  const DeviceBuffer device_parts = DeviceBuffer::copy_of(parts);
  launch(Kernel{device_items.as<typename Kernel::Item>(), device_parts.as<FilterPart>(),
                static_cast<int>(parts.size())},
         nullptr);
}

template <class T> std::vector<Checked> cast(const FilterShape& shape) {
  MadeUp made_up(7);
  const auto weight = made_up.normals<float>(shape.dense());
  const auto gradient = made_up.normals<T>(shape.stored());
  const DeviceBuffer device_weight = DeviceBuffer::copy_of(weight);
  const DeviceBuffer device_gradient = DeviceBuffer::copy_of(gradient);
  const DeviceBuffer folded = unwritten<T>(shape.stored());
  const DeviceBuffer widened_gradient = unwritten<float>(shape.dense());
  run_over<PrepareWeights<T>>(
      {{.shape = shape, .weight = device_weight.as<float>(), .prepared = folded.as<T>()}});
  // As the second item, after one with another number of outputs.
  const FilterShape before = {3, shape.taps, shape.inputs, shape.padded_inputs};
  const DeviceBuffer widened_before = unwritten<float>(before.dense());
  const DeviceBuffer gradient_before = DeviceBuffer::copy_of(made_up.normals<T>(before.stored()));
  run_over<WidenGradients<T>>({{before, gradient_before.as<T>(), widened_before.as<float>()},
                               {shape, device_gradient.as<T>(), widened_gradient.as<float>()}});
  return {{"cast", read<T>(folded), stored(widened(weight), shape), TypeFacts<T>::kRounding,
           TypeFacts<T>::kDenormal},
          {"widened", read<float>(widened_gradient), dense(widened(gradient), shape), 0, 0}};
}

template <class T> std::vector<Checked> folded(const FilterShape& shape, std::int64_t rows) {
  MadeUp made_up(11);
  const int outputs = shape.outputs;
  const auto weight = made_up.normals<float>(shape.dense());
  const auto gamma = made_up.normals<float>(outputs, 1, 0.2);
  const auto beta = made_up.normals<float>(outputs);
  const auto mean = made_up.normals<float>(outputs);
  const auto variance = made_up.normals<float>(outputs, 2, 0.3);
  const auto dy = made_up.normals<T>(rows * outputs);
  const auto d_folded = made_up.normals<T>(shape.stored());

  const auto w = widened(weight);
  const auto dw = dense(widened(d_folded), shape);
  const auto wide_dy = widened(dy);
  std::vector<double> folded_weight, bias, scale, inv_std, d_weight, d_gamma, d_beta;
  for (int o = 0; o < outputs; ++o) {
    inv_std.push_back(1 / std::sqrt(static_cast<double>(variance[at(o)]) + kBatchNormEpsilon));
    scale.push_back(inv_std.back() * static_cast<double>(gamma[at(o)]));
    bias.push_back(static_cast<double>(beta[at(o)]) -
                   scale.back() * static_cast<double>(mean[at(o)]));
    double dot = 0;
    const std::int64_t each = shape.dense() / outputs;
    for (std::int64_t i = o * each; i < (o + 1) * each; ++i) {
      folded_weight.push_back(w[at(i)] * scale.back());
      d_weight.push_back(dw[at(i)] * scale.back());
      dot += dw[at(i)] * w[at(i)];
    }
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) sum += wide_dy[at(r * outputs + o)];
    d_beta.push_back(sum);
    d_gamma.push_back(inv_std.back() * (dot - static_cast<double>(mean[at(o)]) * sum));
  }

  const DeviceBuffer device_weight = DeviceBuffer::copy_of(weight);
  const DeviceBuffer device_gamma = DeviceBuffer::copy_of(gamma);
  const DeviceBuffer device_beta = DeviceBuffer::copy_of(beta);
  const DeviceBuffer device_mean = DeviceBuffer::copy_of(mean);
  const DeviceBuffer device_variance = DeviceBuffer::copy_of(variance);
  const DeviceBuffer device_dy = DeviceBuffer::copy_of(dy);
  const DeviceBuffer device_d_folded = DeviceBuffer::copy_of(d_folded);
  const DeviceBuffer got_folded = unwritten<T>(shape.stored());
  const DeviceBuffer got_bias = unwritten<T>(outputs);
  const DeviceBuffer got_scale = unwritten<float>(outputs);
  const DeviceBuffer got_inv_std = unwritten<float>(outputs);
  const DeviceBuffer partial = unwritten<double>(ChannelTiles{rows, outputs}.partials(1));
  const DeviceBuffer got_d_weight = unwritten<float>(shape.dense());
  const DeviceBuffer got_d_gamma = unwritten<float>(outputs);
  const DeviceBuffer got_d_beta = unwritten<float>(outputs);
  // d_beta, as if another kernel had summed it.
  const DeviceBuffer sum = DeviceBuffer::copy_of(std::vector<float>(d_beta.begin(), d_beta.end()));
  // As the second item, after a filter that is only cast.
  const DeviceBuffer cast = unwritten<T>(shape.stored());
  run_over<PrepareWeights<T>>(
      {{.shape = shape, .weight = device_weight.as<float>(), .prepared = cast.as<T>()},
       {shape, device_weight.as<float>(), got_folded.as<T>(), device_gamma.as<float>(),
        device_beta.as<float>(), device_mean.as<float>(), device_variance.as<float>(),
        kBatchNormEpsilon, got_bias.as<T>(), got_scale.as<float>(), got_inv_std.as<float>()}});
  launch(MaskedSums<T>{.rows = rows,
                       .channels = outputs,
                       .row_stride = outputs,
                       .dy = device_dy.as<T>(),
                       .partial = partial.as<double>()},
         nullptr);
  // Two items, so that one is not the first.
  const FoldedGradient<T> gradients = {shape,
                                       rows,
                                       partial.as<double>(),
                                       device_d_folded.as<T>(),
                                       device_weight.as<float>(),
                                       got_scale.as<float>(),
                                       got_inv_std.as<float>(),
                                       device_mean.as<float>(),
                                       got_d_weight.as<float>(),
                                       got_d_gamma.as<float>(),
                                       got_d_beta.as<float>()};
  FoldedGradient<T> before = gradients;
  const DeviceBuffer before_d_weight = unwritten<float>(shape.dense());
  const DeviceBuffer before_d_gamma = unwritten<float>(outputs);
  const DeviceBuffer before_d_beta = unwritten<float>(outputs);
  before.partial = nullptr;
  before.sum = sum.as<float>();
  before.d_weight = before_d_weight.as<float>();
  before.d_gamma = before_d_gamma.as<float>();
  before.d_beta = before_d_beta.as<float>();
  run_over<FoldedGradients<T>>({before, gradients});
  const double rounding = TypeFacts<T>::kRounding;
  const double of_rows = 1e-6 * static_cast<double>(rows) + 1e-6;
  // Two roundings to float32 besides T's own; dot products over the dense elements are in double.
  return {{"cast", read<T>(cast), stored(w, shape), rounding, TypeFacts<T>::kDenormal},
          {"folded", read<T>(got_folded), stored(folded_weight, shape), rounding + 2e-7,
           TypeFacts<T>::kDenormal},
          {"bias", read<T>(got_bias), bias, rounding, 1e-6},
          {"scale", read<float>(got_scale), scale, 1e-7, 0},
          {"inv_std", read<float>(got_inv_std), inv_std, 1e-7, 0},
          {"d_weight", read<float>(got_d_weight), d_weight, 2e-7, 0},
          {"d_gamma", read<float>(got_d_gamma), d_gamma, 1e-6, of_rows},
          {"d_beta", read<float>(got_d_beta), d_beta, 1e-6, of_rows},
          {"d_weight of sums", read<float>(before_d_weight), d_weight, 2e-7, 0},
          {"d_gamma of sums", read<float>(before_d_gamma), d_gamma, 1e-6, of_rows},
          {"d_beta of sums", read<float>(before_d_beta), d_beta, 1e-7, 0}};
}

// Rows of `channels` dense values, each followed by `gap` elements of `filling`.
template <class T>
std::vector<T> spaced(const std::vector<T>& values, int channels, int gap, const T& filling) {
  std::vector<T> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(values[i]);
    if ((i + 1) % at(channels) == 0) out.insert(out.end(), at(gap), filling);
  }
  return out;
}

// What MaskedSums does with g besides adding it up.
enum class Gradient { kInPlace, kBeside, kMaskedBefore };

// Every way MaskedSums is called: g in dy's place or in another array, or dy masked already; with
// the residual's gradient or without; with gaps between rows only without a residual.
template <class T>
std::vector<Checked> masked(std::int64_t rows, int channels, int gap, Gradient write, bool residual,
                            bool accumulate) {
  MadeUp made_up(13);
  const std::int64_t count = rows * channels;
  const bool masks = write != Gradient::kMaskedBefore;
  auto z = made_up.normals<T>(count);
  for (T& value : z) {
    if (!(Element<T>::widen(value) > 0)) value = Element<T>::narrow(0);  // as ReLU leaves it
  }
  const auto dy = made_up.normals<T>(count);
  const auto held = made_up.normals<T>(count);
  const auto wide_z = widened(z);
  const auto wide_dy = widened(dy);
  const auto wide_held = widened(held);
  std::vector<double> g, d_residual;
  std::vector<double> sums(at(channels), 0.0);
  for (std::int64_t i = 0; i < count; ++i) {
    g.push_back(masks && !(wide_z[at(i)] > 0) ? 0 : wide_dy[at(i)]);
    d_residual.push_back(accumulate ? wide_held[at(i)] + g.back() : g.back());
    sums[at(i % channels)] += g.back();
  }
  const auto seven = Element<T>::narrow(7);  // in the gaps, where it must stay
  const std::vector<T> spaced_dy = spaced(dy, channels, gap, seven);
  const DeviceBuffer device_z = DeviceBuffer::copy_of(spaced(z, channels, gap, seven));
  const DeviceBuffer device_dy = DeviceBuffer::copy_of(spaced_dy);
  const DeviceBuffer beside = DeviceBuffer::copy_of(std::vector<T>(spaced_dy.size(), seven));
  const DeviceBuffer device_residual =
      accumulate ? DeviceBuffer::copy_of(held) : unwritten<T>(count);
  const ChannelTiles tiles{rows, channels};
  const DeviceBuffer partial = unwritten<double>(tiles.partials(1));
  const DeviceBuffer& gradient = write == Gradient::kBeside ? beside : device_dy;
  launch(
      MaskedSums<T>{rows, channels, channels + gap, device_dy.as<T>(),
                    masks ? device_z.as<T>() : nullptr, masks ? gradient.as<T>() : nullptr,
                    residual ? device_residual.as<T>() : nullptr, accumulate, partial.as<double>()},
      nullptr);
  std::vector<double> got_sums(at(channels), 0.0);
  const auto parts = partial.values<double>();
  for (std::size_t i = 0; i < parts.size(); ++i) got_sums[i % at(channels)] += parts[i];
  // A thread adds up a tile of 128 rows in float32, to some 35 at three standard deviations: each
  // addition may be off by 1e-6, and few of these errors cancel in one tile.
  const double of_tiles = 5e-7 * static_cast<double>(rows) + 1e-6;
  std::vector<Checked> out = {{"g", read<T>(gradient), spaced(g, channels, gap, 7.0), 0, 0},
                              {"sums", got_sums, sums, 1e-6, of_tiles}};
  if (residual) {
    out.push_back({"d_residual", read<T>(device_residual), d_residual, TypeFacts<T>::kRounding,
                   accumulate ? 1e-7 : 0.0});
  }
  return out;
}

// Bias, residual and ReLU after a convolution, where the library did not fuse them.
template <class T>
std::vector<Checked> bias_and_relu(std::int64_t rows, int channels, int gap, bool residual,
                                   bool relu) {
  MadeUp made_up(13);
  const std::int64_t count = rows * channels;
  auto y = made_up.normals<T>(count);
  y[at(count / 2)] = Element<T>::narrow(std::nanf(""));
  const auto bias = made_up.normals<T>(channels);
  const auto held = made_up.normals<T>(count);
  const auto wide_y = widened(y), wide_bias = widened(bias), wide_held = widened(held);
  std::vector<double> expected;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value =
        wide_y[at(i)] + wide_bias[at(i % channels)] + (residual ? wide_held[at(i)] : 0.0);
    expected.push_back(relu && value <= 0 ? 0.0 : value);  // NaN stays
  }
  const DeviceBuffer device_y =
      DeviceBuffer::copy_of(spaced(y, channels, gap, Element<T>::narrow(7)));
  const DeviceBuffer device_bias = DeviceBuffer::copy_of(bias);
  const DeviceBuffer device_held = DeviceBuffer::copy_of(held);
  launch(AddBiasAndRelu<T>{.rows = rows,
                           .channels = channels,
                           .bias = device_bias.as<T>(),
                           .residual = residual ? device_held.as<T>() : nullptr,
                           .relu = relu,
                           .y = device_y.as<T>(),
                           .y_stride = channels + gap},
         nullptr);
  // Three numbers are added in float32, and the sum rounded to T once.
  return {{"y", read<T>(device_y), spaced(expected, channels, gap, 7.0),
           TypeFacts<T>::kRounding + 2e-7, 1e-6}};
}

FilterShape drawn_filter(std::mt19937& random) {
  const auto up_to = [&](int most) {
    return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  };
  FilterShape shape;
  shape.outputs = up_to(80);
  shape.columns = up_to(7);
  shape.taps = shape.columns * up_to(7);
  shape.inputs = up_to(40);
  shape.cell = up_to(3);
  const int least = shape.cell * shape.cell * shape.inputs;
  shape.padded_inputs = random() % 2 == 0 ? (least + 7) / 8 * 8 : least + up_to(4) - 1;
  return shape;
}

// Sizes with remainders everywhere; the seed is in the name.
void add_drawn_cases(std::vector<KernelCase>& cases) {
  const auto seed = static_cast<std::uint32_t>(random_seed());
  std::mt19937 random(seed);
  for_types([&]<class T>() {
    for (int i = 0; i < 8; ++i) {
      const std::string of = fmt::format("{}_seed{}_{}", TypeFacts<T>::kName, seed, i);
      const int channels = random() % 2 == 0 ? 8 * static_cast<int>(1 + random() % 20)
                                             : static_cast<int>(1 + random() % 150);
      const auto rows = static_cast<std::int64_t>(1 + random() % 700);
      const bool residual = random() % 2 == 0, accumulate = residual && random() % 2 == 0;
      const int gap = residual ? 0 : static_cast<int>(random() % 25);
      const auto write = static_cast<Gradient>(random() % 3);
      cases.push_back({"masked_sums_" + of, [=] {
                         return masked<T>(rows, channels, gap, write, residual, accumulate);
                       }});
      const bool relu = random() % 2 == 0;
      cases.push_back({"bias_and_relu_" + of,
                       [=] { return bias_and_relu<T>(rows, channels, gap, residual, relu); }});
      const FilterShape filter = drawn_filter(random);
      cases.push_back({"cast_weights_" + of, [=] { return cast<T>(filter); }});
      cases.push_back({"folded_" + of, [=] { return folded<T>(filter, rows); }});
    }
  });
  // Tiles of more than the fewest rows, as in training: 1024 tiles of 137.
  cases.push_back({"masked_sums_large_tiles",
                   [] { return masked<float>(140'003, 4, 0, Gradient::kInPlace, false, false); }});
}

}  // namespace

void add_convolution_cases(std::vector<KernelCase>& cases) {
  for_types([&]<class T>() {
    const std::string type = TypeFacts<T>::kName;
    // Dense in whole packs; dense but not in whole packs; padded as the first layer is; more than
    // one block.
    cases.push_back({"cast_weights_dense_" + type, [] { return cast<T>({9, 2, 16, 16}); }});
    cases.push_back({"cast_weights_odd_" + type, [] { return cast<T>({5, 1, 3, 3}); }});
    cases.push_back({"cast_weights_padded_" + type, [] { return cast<T>({1, 49, 3, 8}); }});
    cases.push_back({"cast_weights_large_" + type, [] { return cast<T>({301, 1, 33, 33}); }});
    // In cells: 7x7 taps in 4x4 cells of 2x2; 3x2 taps of 5 inputs in 2x1 cells of 2x2; 7x5 taps in
    // cells of 3x3.
    cases.push_back({"cast_weights_cells_" + type, [] { return cast<T>({9, 49, 3, 16, 2, 7}); }});
    cases.push_back({"cast_weights_odd_cells_" + type, [] {
                       return cast<T>({70, 6, 5, 24, 2, 2});
                     }});
    cases.push_back({"cast_weights_cells_of_9_" + type, [] {
                       return cast<T>({4, 35, 3, 32, 3, 5});
                     }});
    cases.push_back({"folded_cells_" + type, [] { return folded<T>({10, 49, 3, 16, 2, 7}, 7); }});
    cases.push_back({"folded_dense_" + type, [] { return folded<T>({40, 9, 24, 24}, 300); }});
    cases.push_back({"folded_small_" + type, [] { return folded<T>({150, 1, 8, 8}, 7); }});
    cases.push_back({"folded_stem_" + type, [] { return folded<T>({10, 49, 3, 4}, 7); }});
    cases.push_back({"folded_odd_" + type, [] { return folded<T>({3, 1, 5, 5}, 1); }});
    for (const bool residual : {false, true}) {
      for (const bool relu : {false, true}) {
        cases.push_back({fmt::format("bias_and_relu_{}_{}_{}", type, residual, relu),
                         [=] { return bias_and_relu<T>(913, 7, 0, residual, relu); }});
        cases.push_back({fmt::format("bias_and_relu_spaced_{}_{}_{}", type, residual, relu),
                         [=] { return bias_and_relu<T>(213, 8, 16, residual, relu); }});
      }
    }
    const std::pair<const char*, Gradient> writes[] = {{"in_place", Gradient::kInPlace},
                                                       {"beside", Gradient::kBeside},
                                                       {"masked_before", Gradient::kMaskedBefore}};
    for (const auto& each : writes) {
      const auto add = [&](const char* what, std::int64_t rows, int channels, int gap,
                           bool residual, bool accumulate) {
        cases.push_back(
            {fmt::format("masked_sums_{}{}_{}", what, type, each.first), [=, write = each.second] {
               return masked<T>(rows, channels, gap, write, residual, accumulate);
             }});
      };
      add("", 200, 72, 0, false, false);
      add("residual_", 65, 3, 0, true, false);
      add("residual_packs_", 71, 24, 0, true, false);
      add("accumulate_", 300, 16, 0, true, true);
      add("spaced_", 200, 72, 24, false, false);
      add("spaced_oddly_", 150, 16, 3, false, false);
    }
  });
  add_drawn_cases(cases);
}

}  // namespace rk
