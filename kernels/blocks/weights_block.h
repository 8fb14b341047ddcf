// Converts a convolution's weight between the optimizer's form, float [outputs, taps, inputs] dense
// (OHWI, taps = kernel height x width), and the convolution's, T [outputs, taps, padded_inputs]
// with zeros after the inputs. Over images in cells of pixels (SpaceToDepth in
// engine/tape/layout.h) the latter has fewer taps, the inputs of a cell's pixels follow each other,
// and positions outside the kernel are zero.
//
//   PrepareWeights  W' = W, or with a frozen batch normalisation folded in (layers/conv_bn.h)
//                   W'[o] = scale[o] W[o],  b'[o] = beta[o] - scale[o] mean[o],
//                   scale = gamma inv_std of the running statistics
//   WidenGradients  dW = dW'
//
// Each kernel handles all weights of a network at once: a kernel per weight would spend most of its
// time on the launch.
// Bytes moved, n = outputs taps inputs: (4 + sizeof(T)) n.
#pragma once

#include "kernels/block_team.h"
#include "kernels/blocks/batchnorm_channel.h"
#include "kernels/blocks/elementwise_block.h"

#include <algorithm>
#include <cstdint>

namespace rk {

// The shape of a weight and of its copy in T.
struct FilterShape {
  int outputs = 0;
  int taps = 0;
  int inputs = 0;
  int padded_inputs = 0;
  int cell = 1;     // pixels along a cell's side
  int columns = 0;  // of the kernel; read only if there are cells

  // Elements of an output.
  RK_BOTH int dense_each() const { return taps * inputs; }
  RK_BOTH int stored_each() const {
    if (cell == 1) return taps * padded_inputs;
    return cells(taps / columns) * cells(columns) * padded_inputs;
  }
  RK_BOTH std::int64_t dense() const { return static_cast<std::int64_t>(outputs) * dense_each(); }
  RK_BOTH std::int64_t stored() const { return static_cast<std::int64_t>(outputs) * stored_each(); }
  // Whether both copies have the same layout in whole packs.
  template <class T> RK_FN RK_INLINE bool packs() const {
    return cell == 1 && inputs == padded_inputs && inputs % kPack<T> == 0;
  }
  // Where an output's dense element number i is stored.
  RK_FN RK_INLINE int stored_at(int i) const {
    const int tap = i / inputs;
    const int input = i % inputs;
    if (cell == 1) return tap * padded_inputs + input;
    const int y = tap / columns;
    const int x = tap % columns;
    return (y / cell * cells(columns) + x / cell) * padded_inputs +
           (y % cell * cell + x % cell) * inputs + input;
  }
  // The dense element that stored element number i holds; -1: none, it is 0.
  RK_FN RK_INLINE int dense_at(int i) const {
    const int tap = i / padded_inputs;
    const int channel = i % padded_inputs;
    if (cell == 1) return channel < inputs ? tap * inputs + channel : -1;
    const int pixel = channel / inputs;
    const int y = tap / cells(columns) * cell + pixel / cell;
    const int x = tap % cells(columns) * cell + pixel % cell;
    const bool inside = pixel < cell * cell && y < taps / columns && x < columns;
    return inside ? (y * columns + x) * inputs + channel % inputs : -1;
  }

 private:
  RK_BOTH int cells(int pixels) const { return divide_up(pixels, cell); }
};

// How one weight is prepared; if gamma is null it is only cast, and the members after gamma are
// neither read nor written.
template <class T> struct Filter {
  FilterShape shape;
  const float* weight = nullptr;
  T* prepared = nullptr;  // [outputs, stored_each]
  const float* gamma = nullptr;
  const float* beta = nullptr;
  const float* mean = nullptr;      // running
  const float* variance = nullptr;  // running
  double epsilon = 1e-5;
  T* bias = nullptr;         // [outputs]
  float* scale = nullptr;    // [outputs]
  float* inv_std = nullptr;  // [outputs]
};

// A block's work: whole output channels [first, first + outputs) of a filter, about kBlockElements
// elements.
struct FilterPart {
  static constexpr int kMostOutputs = 64;

  int filter = 0;
  int first = 0;
  int outputs = 0;

  // Calls f(part) for all parts of filter number `filter`, which depend on its shape alone.
  template <class F> static void for_each(int filter, const FilterShape& shape, F&& f) {
    const int each =
        std::clamp(kBlockElements / shape.stored_each(), 1, static_cast<int>(kMostOutputs));
    for (int first = 0; first < shape.outputs; first += each) {
      f(FilterPart{filter, first, std::min(each, shape.outputs - first)});
    }
  }
};

template <class T> struct PrepareWeights {
  using Item = Filter<T>;
  const Filter<T>* filters = nullptr;
  const FilterPart* parts = nullptr;
  int count = 0;  // of parts

  template <class F> static void for_each_part(int filter, const FilterShape& shape, F&& f) {
    FilterPart::for_each(filter, shape, f);
  }

  struct Scales {
    float of[FilterPart::kMostOutputs];
  };
  template <int kThreads> using Shared = Scales;
  int blocks() const { return count; }
  template <class Block> RK_FN void operator()(const Block& block, Scales& scales) const {
    const FilterPart part = parts[block.index()];
    const Filter<T> filter = filters[part.filter];
    const FilterShape& shape = filter.shape;
    for (int k = block.thread(); k < part.outputs; k += Block::kThreads) {
      scales.of[k] = filter.gamma == nullptr ? 1.0F : fold(filter, part.first + k);
    }
    block.sync();

    const int each = shape.stored_each();
    const int size = part.outputs * each;
    const float* from = filter.weight + static_cast<std::int64_t>(part.first) * shape.dense_each();
    T* to = filter.prepared + static_cast<std::int64_t>(part.first) * each;
    if (shape.packs<T>()) {
      for (int i = block.thread() * kPack<T>; i < size; i += Block::kThreads * kPack<T>) {
        const float by = scales.of[i / each];
        const auto held = load_pack<kPack<T>>(from + i);
        Pack<T, kPack<T>> out;
        RK_UNROLL
        for (int k = 0; k < kPack<T>; ++k) out.set(k, held[k] * by);
        store_pack(to + i, out);
      }
      return;
    }
    for (int i = block.thread(); i < size; i += Block::kThreads) {
      const int output = i / each;
      const int dense = shape.dense_at(i - output * each);
      const float value =
          dense >= 0 ? from[output * shape.dense_each() + dense] * scales.of[output] : 0.0F;
      to[i] = Element<T>::narrow(value);
    }
  }

 private:
  // The factor of output channel o.
  RK_FN RK_INLINE static float fold(const Filter<T>& filter, int o) {
    const double inverse = inverse_deviation(filter.variance[o], filter.epsilon);
    const double factor = static_cast<double>(filter.gamma[o]) * inverse;
    const auto rounded = static_cast<float>(factor);
    filter.inv_std[o] = static_cast<float>(inverse);
    filter.scale[o] = rounded;
    filter.bias[o] = Element<T>::narrow(static_cast<float>(
        static_cast<double>(filter.beta[o]) - factor * static_cast<double>(filter.mean[o])));
    return rounded;
  }
};

// A gradient as the convolution computes it, [outputs, stored_each], and where it goes.
template <class T> struct WeightGradient {
  FilterShape shape;
  T* gradient = nullptr;
  float* d_weight = nullptr;
};

// Overwrites d_weight; does not read the padding of the gradient.
template <class T> struct WidenGradients {
  using Item = WeightGradient<T>;
  const WeightGradient<T>* gradients = nullptr;
  const FilterPart* parts = nullptr;
  int count = 0;  // of parts

  template <class F> static void for_each_part(int filter, const FilterShape& shape, F&& f) {
    FilterPart::for_each(filter, shape, f);
  }
  int blocks() const { return count; }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const FilterPart part = parts[block.index()];
    const WeightGradient<T> of = gradients[part.filter];
    const FilterShape& shape = of.shape;
    const T* from = of.gradient + static_cast<std::int64_t>(part.first) * shape.stored_each();
    float* to = of.d_weight + static_cast<std::int64_t>(part.first) * shape.dense_each();
    const int each = shape.dense_each();
    const int size = part.outputs * each;
    if (shape.packs<T>()) {
      for (int i = block.thread() * kPack<T>; i < size; i += Block::kThreads * kPack<T>) {
        const auto held = load_pack<kPack<T>>(from + i);
        Pack<float, kPack<T>> out;
        RK_UNROLL
        for (int k = 0; k < kPack<T>; ++k) out.set(k, held[k]);
        store_pack(to + i, out);
      }
      return;
    }
    for (int i = block.thread(); i < size; i += Block::kThreads) {
      const int output = i / each;
      to[i] = Element<T>::widen(
          from[output * shape.stored_each() + shape.stored_at(i - output * each)]);
    }
  }
};

}  // namespace rk
