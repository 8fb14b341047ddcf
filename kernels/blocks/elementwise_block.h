// Element-wise passes over whole tensors. A block takes kBlockElements elements in order. Bytes
// moved: every operand once.
#pragma once

#include "kernels/element.h"

#include <algorithm>
#include <cstdint>

namespace rk {

inline constexpr int kBlockElements = 4096;
inline int element_blocks(std::int64_t count) {
  return static_cast<int>(divide_up(count, kBlockElements));
}

// Calls f.operator()<W>(i) for the elements [i, i + W) of this block's share of `count`: in packs
// of kWidth, the rest one by one.
template <int kWidth, class Block, class F>
RK_FN RK_INLINE void for_packs(const Block& block, std::int64_t count, F&& f) {
  const std::int64_t begin = static_cast<std::int64_t>(block.index()) * kBlockElements;
  const std::int64_t end = std::min(count, begin + kBlockElements);
  const std::int64_t whole = begin + (end - begin) / kWidth * kWidth;
  for (std::int64_t i = begin + block.thread() * kWidth; i < whole; i += Block::kThreads * kWidth) {
    f.template operator()<kWidth>(i);
  }
  if constexpr (kWidth > 1) {
    for (std::int64_t i = whole + block.thread(); i < end; i += Block::kThreads) {
      f.template operator()<1>(i);
    }
  }
}

// y = x, or y += x with accumulate.
template <class T> struct CopyOrAdd {
  std::int64_t count = 0;
  const T* x = nullptr;
  T* y = nullptr;
  bool accumulate = false;

  int blocks() const { return element_blocks(count); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_packs<kPack<T>>(block, count, [&]<int kWidth>(std::int64_t i) {
      auto out = load_pack<kWidth>(x + i);
      if (accumulate) {
        const auto held = load_pack<kWidth>(y + i);
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) out.set(k, held[k] + out[k]);
      }
      store_pack(y + i, out);
    });
  }
};

// Elements between the last pack boundary and p. with_pack() of this, combined by | with lengths
// and strides, uses packs only if all of these are whole packs.
template <class T> RK_FN RK_INLINE std::int64_t place_in_pack(const T* p) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T) % kPack<T>);
}

// Rows of `channels` elements, x_stride apart in x and y_stride in y: y = x, or y += x with
// accumulate. Copies channels between tensors with different numbers of channels.
template <class T> struct CopyChannels {
  std::int64_t rows = 0;
  int channels = 0;
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  T* y = nullptr;
  std::int64_t y_stride = 0;
  bool accumulate = false;

  int blocks() const { return element_blocks(rows * channels); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    with_pack<T>(
        channels | x_stride | y_stride | place_in_pack(x) | place_in_pack(y), [&]<int kWidth>() {
          const std::int64_t begin = static_cast<std::int64_t>(block.index()) * kBlockElements;
          const std::int64_t end = std::min(rows * channels, begin + kBlockElements);
          for (std::int64_t i = begin + block.thread() * kWidth; i < end;
               i += Block::kThreads * kWidth) {
            const std::int64_t row = i / channels;
            const std::int64_t channel = i - row * channels;
            auto out = load_pack<kWidth>(x + row * x_stride + channel);
            T* const to = y + row * y_stride + channel;
            if (accumulate) {
              const auto held = load_pack<kWidth>(to);
              RK_UNROLL
              for (int k = 0; k < kWidth; ++k) out.set(k, held[k] + out[k]);
            }
            store_pack(to, out);
          }
        });
  }
};

// What the library could not fuse into a convolution, in place: y (rows, C), rows y_stride apart,
// becomes y + bias[c] + residual (dense; may be null); with relu, rectified.
template <class T> struct AddBiasAndRelu {
  std::int64_t rows = 0;
  int channels = 0;
  const T* bias = nullptr;
  const T* residual = nullptr;
  bool relu = false;
  T* y = nullptr;
  std::int64_t y_stride = 0;

  int blocks() const { return element_blocks(rows * channels); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_packs<1>(block, rows * channels, [&]<int>(std::int64_t i) {
      const std::int64_t row = i / channels;
      const std::int64_t channel = i - row * channels;
      T& place = y[row * y_stride + channel];
      float value = Element<T>::widen(place) + Element<T>::widen(bias[channel]);
      if (residual != nullptr) value += Element<T>::widen(residual[i]);
      place = Element<T>::narrow(relu ? rectified(value) : value);
    });
  }
};

// y = a + b; y may be either.
template <class T> struct AddTensors {
  std::int64_t count = 0;
  const T* a = nullptr;
  const T* b = nullptr;
  T* y = nullptr;

  int blocks() const { return element_blocks(count); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_packs<kPack<T>>(block, count, [&]<int kWidth>(std::int64_t i) {
      auto out = load_pack<kWidth>(a + i);
      const auto other = load_pack<kWidth>(b + i);
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) out.set(k, out[k] + other[k]);
      store_pack(y + i, out);
    });
  }
};

// y = rectified(x); y may be x.
template <class T> struct Relu {
  std::int64_t count = 0;
  const T* x = nullptr;
  T* y = nullptr;

  int blocks() const { return element_blocks(count); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_packs<kPack<T>>(block, count, [&]<int kWidth>(std::int64_t i) {
      auto out = load_pack<kWidth>(x + i);
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) out.set(k, rectified(out[k]));
      store_pack(y + i, out);
    });
  }
};

// dx = dy where z > 0, else 0, or added to dx. z is ReLU's input or its output; dx may be dy.
template <class T> struct ReluGradient {
  std::int64_t count = 0;
  const T* z = nullptr;
  const T* dy = nullptr;
  T* dx = nullptr;
  bool accumulate = false;

  int blocks() const { return element_blocks(count); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_packs<kPack<T>>(block, count, [&]<int kWidth>(std::int64_t i) {
      const auto mask = load_pack<kWidth>(z + i);
      const auto gradient = load_pack<kWidth>(dy + i);
      Pack<T, kWidth> held{};
      if (accumulate) held = load_pack<kWidth>(dx + i);
      Pack<T, kWidth> out;
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        const float g = mask[k] > 0 ? gradient[k] : 0.0F;
        out.set(k, accumulate ? held[k] + g : g);
      }
      store_pack(dx + i, out);
    });
  }
};

// values *= *factor; the kernel reads the factor when it runs.
struct Scale {
  std::int64_t count = 0;
  const float* factor = nullptr;
  float* values = nullptr;

  int blocks() const { return element_blocks(count); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    const float by = *factor;
    for_packs<kPack<float>>(block, count, [&]<int kWidth>(std::int64_t i) {
      auto out = load_pack<kWidth>(values + i);
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) out.set(k, out[k] * by);
      store_pack(values + i, out);
    });
  }
};

}  // namespace rk
