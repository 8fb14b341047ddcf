// Converts image tensors from PyTorch's order (N, C, H, W) to the product's (N, H, W, C) and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rk {

template <class T>
std::vector<T> nchw_to_nhwc(const std::vector<T>& in, std::int64_t channels, std::int64_t pixels) {
  std::vector<T> out(in.size());
  const auto c = static_cast<std::size_t>(channels), p = static_cast<std::size_t>(pixels);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t n = i / (c * p), channel = i / p % c, pixel = i % p;
    out[(n * p + pixel) * c + channel] = in[i];
  }
  return out;
}

// The same exchange of the two inner axes, the other way round.
template <class T>
std::vector<T> nhwc_to_nchw(const std::vector<T>& in, std::int64_t channels, std::int64_t pixels) {
  return nchw_to_nhwc(in, pixels, channels);
}

}  // namespace rk
