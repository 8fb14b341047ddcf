// Element-wise passes over whole tensors. A block takes kBlockElements elements in order. Bytes
// moved: what is read and what is written, each once.
#pragma once

#include "kernels/element.h"

#include <algorithm>
#include <cstdint>

namespace rk {

inline constexpr int kBlockElements = 4096;
inline int element_blocks(std::int64_t count) {
  return static_cast<int>((count + kBlockElements - 1) / kBlockElements);
}

// f.operator()<W>(i) for the elements [i, i + W) of `count`, in packs of kWidth and the rest one by
// one.
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

// Elements from a multiple of packs to p: with_pack() of it and of lengths takes packs where all of
// them are whole.
template <class T> RK_FN RK_INLINE std::int64_t place_in_pack(const T* p) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T) % kPack<T>);
}

// Rows of `channels` elements, x_stride apart in x and y_stride in y: y = x, or y += x with
// accumulate. Channels of one tensor among more of another.
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

// Rows of `channels` elements, y_stride apart in y, of which `taken` from `first` on are a row of
// x, x_stride apart there, and the others 0: the gradient of what a range of channels was taken
// from.
template <class T> struct PadChannels {
  std::int64_t rows = 0;
  int channels = 0;
  int first = 0;
  int taken = 0;
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  T* y = nullptr;
  std::int64_t y_stride = 0;

  int blocks() const { return element_blocks(rows * channels); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    with_pack<T>(
        channels | first | taken | x_stride | y_stride | place_in_pack(x) | place_in_pack(y),
        [&]<int kWidth>() {
          const std::int64_t begin = static_cast<std::int64_t>(block.index()) * kBlockElements;
          const std::int64_t end = std::min(rows * channels, begin + kBlockElements);
          for (std::int64_t i = begin + block.thread() * kWidth; i < end;
               i += Block::kThreads * kWidth) {
            const std::int64_t row = i / channels;
            const std::int64_t channel = i - row * channels;
            const std::int64_t from = channel - first;
            Pack<T, kWidth> out{};
            if (from >= 0 && from < taken) {
              out = load_pack<kWidth>(x + row * x_stride + from);
            }
            store_pack(y + row * y_stride + channel, out);
          }
        });
  }
};

// What the library could not fuse behind a convolution: y (rows, C), rows y_stride apart, becomes
// y + bias[c] + residual, the residual (dense) where there is one, and with relu 0 where that is
// not above 0.
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
      place = Element<T>::narrow(relu && !(value > 0) ? 0.0F : value);
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

// y = x where x > 0, else 0 (of NaN too); y may be x.
template <class T> struct Relu {
  std::int64_t count = 0;
  const T* x = nullptr;
  T* y = nullptr;

  int blocks() const { return element_blocks(count); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    for_packs<kPack<T>>(block, count, [&]<int kWidth>(std::int64_t i) {
      auto out = load_pack<kWidth>(x + i);
      RK_UNROLL
      for (int k = 0; k < kWidth; ++k) out.set(k, out[k] > 0 ? out[k] : 0.0F);
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

// values *= *factor, which is read when the kernel runs.
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
