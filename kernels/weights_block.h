// Between a convolution's weight as the optimizer has it, float [filters, inputs] dense (filters =
// outputs x taps, OHWI), and as the convolution computes with it, T [filters, padded_inputs].
// Bytes moved: (4 + sizeof(T)) filters inputs.
#pragma once

#include "kernels/elementwise_block.h"

#include <cstdint>

namespace rk {

// Zeros behind the inputs.
template <class T> struct CastWeights {
  std::int64_t filters = 0;
  int inputs = 0;
  int padded_inputs = 0;
  const float* weight = nullptr;
  T* cast = nullptr;

  int blocks() const { return element_blocks(filters * padded_inputs); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    if (inputs == padded_inputs) {
      for_packs<kPack<T>>(block, filters * inputs, [&]<int kWidth>(std::int64_t i) {
        const auto from = load_pack<kWidth>(weight + i);
        Pack<T, kWidth> to;
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) to.set(k, from[k]);
        store_pack(cast + i, to);
      });
      return;
    }
    for_packs<1>(block, filters * padded_inputs, [&]<int>(std::int64_t i) {
      const std::int64_t input = i % padded_inputs;
      const float value = input < inputs ? weight[i / padded_inputs * inputs + input] : 0.0F;
      cast[i] = Element<T>::narrow(value);
    });
  }
};

// d_weight is overwritten; what lies behind the inputs is not read.
template <class T> struct WidenGradient {
  std::int64_t filters = 0;
  int inputs = 0;
  int padded_inputs = 0;
  const T* gradient = nullptr;
  float* d_weight = nullptr;

  int blocks() const { return element_blocks(filters * inputs); }
  template <class Block> RK_FN void operator()(const Block& block) const {
    if (inputs == padded_inputs) {
      for_packs<kPack<T>>(block, filters * inputs, [&]<int kWidth>(std::int64_t i) {
        const auto from = load_pack<kWidth>(gradient + i);
        Pack<float, kWidth> to;
        RK_UNROLL
        for (int k = 0; k < kWidth; ++k) to.set(k, from[k]);
        store_pack(d_weight + i, to);
      });
      return;
    }
    for_packs<1>(block, filters * inputs, [&]<int>(std::int64_t i) {
      d_weight[i] = Element<T>::widen(gradient[i / inputs * padded_inputs + i % inputs]);
    });
  }
};

}  // namespace rk
