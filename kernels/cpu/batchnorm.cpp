#include "kernels/cpu/batchnorm.h"

#include "engine/base/parallel.h"
#include "kernels/blocks/batchnorm_channel.h"
#include "kernels/simd.h"

#include <algorithm>

namespace rk::batchnorm_cpu {
namespace {

// Rows that are summed in float32 before the sum is added in double: bounds the rounding error of a
// plane by that of this many additions.
constexpr std::int64_t kRowsPerBlock = 128;

// Tensors from this size on are stored past the caches: measured on ResNet-50, the passes that
// write them take half the time. Smaller ones are better left in cache for the next convolution.
constexpr std::int64_t kStreamBytes = std::int64_t{4} << 20;

template <class L> bool streams(const ImageLayout& layout, const float* out) {
  return layout.elements() * static_cast<std::int64_t>(sizeof(float)) >= kStreamBytes &&
         reinterpret_cast<std::uintptr_t>(out) % sizeof(typename L::V) == 0;
}

// Stores a whole row, past the caches or through them.
template <class L, bool Stream> void put(float* p, typename L::V v) {
  if constexpr (Stream) {
    L::stream(p, v);
  } else {
    L::store(p, v);
  }
}

// A strip: `lanes` channels of one plane; rows are `stride` elements apart.
struct Strip {
  std::int64_t offset;    // of its first element
  std::int64_t channel;   // its first channel
  std::int64_t partial;   // image * channels + channel
  std::int64_t sign_row;  // index of its first Bits
  std::int64_t image;
};

// Calls f(strip) for every strip, spread over threads.
template <class F>
void for_each_strip(int threads, const ImageLayout& layout, std::int64_t lanes, F&& f) {
  const std::int64_t strips = layout.block / lanes;
  parallel_ranges(threads, layout.planes(), [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t image = plane / layout.blocks;
      const std::int64_t group = plane % layout.blocks;
      for (std::int64_t s = 0; s < strips; ++s) {
        const std::int64_t channel = group * layout.block + s * lanes;
        f(Strip{plane * layout.plane() + s * lanes, channel, image * layout.channels() + channel,
                (plane * strips + s) * layout.pixels(), image});
      }
    }
    stream_fence();
  });
}

template <class L> void add_to(double* sums, typename L::V v, std::int64_t lanes) {
  float values[16] = {};
  L::store(values, v);
  for (std::int64_t l = 0; l < lanes; ++l) sums[l] += static_cast<double>(values[l]);
}

// Sums over the rows of a strip of the pair that row(r) returns, in float32 blocks, then double.
template <class L, class Row>
void sum_rows(std::int64_t rows, std::int64_t lanes, double* first, double* second, Row&& row) {
  for (std::int64_t begin = 0; begin < rows; begin += kRowsPerBlock) {
    const std::int64_t end = std::min(rows, begin + kRowsPerBlock);
    // Four chains each, so that the additions' latency is hidden.
    typename L::V a[4], b[4];
    for (int k = 0; k < 4; ++k) a[k] = b[k] = L::all(0);
    std::int64_t r = begin;
    for (; r + 4 <= end; r += 4) {
      for (int k = 0; k < 4; ++k) row(r + k, a[k], b[k]);
    }
    for (; r < end; ++r) row(r, a[0], b[0]);
    add_to<L>(first, (a[0] + a[1]) + (a[2] + a[3]), lanes);
    add_to<L>(second, (b[0] + b[1]) + (b[2] + b[3]), lanes);
  }
}

// Dispatches a run-time mask to a template argument.
template <class F> void with_mask(ReluMask mask, F&& f) {
  switch (mask) {
    case ReluMask::kNone: return f.template operator()<ReluMask::kNone>();
    case ReluMask::kFromInput: return f.template operator()<ReluMask::kFromInput>();
    case ReluMask::kFromSigns: return f.template operator()<ReluMask::kFromSigns>();
  }
}

// g of one row: dy where the forward value was positive.
template <class L, ReluMask M>
typename L::V masked(typename L::V dy, typename L::V centred, typename L::V scale,
                     typename L::V shift, const typename L::Bits* signs, std::int64_t row) {
  if constexpr (M == ReluMask::kNone) return dy;
  if constexpr (M == ReluMask::kFromInput) {
    return L::keep(L::positive(L::fma(centred, scale, shift)), dy);
  }
  return L::keep(signs[row], dy);
}

}  // namespace

std::int64_t partial_sums(const ImageLayout& layout) {
  return 2 * layout.batch * layout.channels();
}

std::size_t sign_bytes(const ImageLayout& layout) {
  const std::int64_t lanes = lane_count(layout.block);
  return static_cast<std::size_t>(layout.elements() / lanes) * (lanes == 16 ? 2 : 1);
}

void plane_statistics(int threads, const ImageLayout& layout, const float* x, double* workspace) {
  const std::int64_t rows = layout.pixels(), stride = layout.block;
  double* means = workspace;
  double* squares = workspace + layout.batch * layout.channels();
  with_lanes(layout.block, [&]<int N>(Lanes<N>) {
    using L = Lanes<N>;
    for_each_strip(threads, layout, N, [&](const Strip& strip) {
      const float* p = x + strip.offset;
      // Eight rows spread over the plane estimate its mean well enough to shift by.
      const std::int64_t samples = std::min<std::int64_t>(rows, 8);
      typename L::V shift = L::all(0);
      for (std::int64_t s = 0; s < samples; ++s) {
        shift = shift + L::load(p + s * rows / samples * stride);
      }
      shift = shift * L::all(1.0F / static_cast<float>(samples));
      double sum[16] = {}, square[16] = {};
      sum_rows<L>(rows, N, sum, square, [&](std::int64_t r, auto& a, auto& b) {
        const auto d = L::load(p + r * stride) - shift;
        a = a + d;
        b = L::fma(d, d, b);
      });
      float shifts[16];
      L::store(shifts, shift);
      const auto count = static_cast<double>(rows);
      for (std::int64_t l = 0; l < N; ++l) {
        means[strip.partial + l] = static_cast<double>(shifts[l]) + sum[l] / count;
        squares[strip.partial + l] = square[l] - sum[l] * sum[l] / count;
      }
    });
  });
}

void finish_statistics(const ImageLayout& layout, const double* workspace, float* mean,
                       float* variance) {
  const std::int64_t channels = layout.channels();
  const double* means = workspace;
  const double* squares = workspace + layout.batch * channels;
  const auto batch = static_cast<double>(layout.batch), rows = static_cast<double>(layout.pixels());
  for (std::int64_t c = 0; c < channels; ++c) {
    double centre = 0;
    for (std::int64_t n = 0; n < layout.batch; ++n) centre += means[n * channels + c];
    centre /= batch;
    double total = 0;
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      const double d = means[n * channels + c] - centre;
      total += squares[n * channels + c] + rows * d * d;
    }
    mean[c] = static_cast<float>(centre);
    variance[c] = biased_variance(total, batch * rows);
  }
}

void normalise(int threads, const ImageLayout& layout, const float* x, const Channels& channels,
               const float* residual, bool relu, void* signs, float* y, std::int64_t y_gap) {
  const std::int64_t rows = layout.pixels(), stride = layout.block;
  const auto pass = [&]<int N, bool Stream>() {
    using L = Lanes<N>;
    for_each_strip(threads, layout, N, [&](const Strip& strip) {
      const auto mean = L::load(channels.mean + strip.channel);
      const auto scale = L::load(channels.scale + strip.channel);
      const auto shift = L::load(channels.shift + strip.channel);
      const float* in = x + strip.offset;
      float* out = y + strip.offset + strip.image * y_gap;
      const auto zero = L::all(0);
      if (residual == nullptr) {
        for (std::int64_t r = 0; r < rows; ++r) {
          auto z = L::fma(L::load(in + r * stride) - mean, scale, shift);
          if (relu) z = L::max(z, zero);
          put<L, Stream>(out + r * stride, z);
        }
        return;
      }
      const float* add = residual + strip.offset;
      auto* bits =
          signs == nullptr ? nullptr : static_cast<typename L::Bits*>(signs) + strip.sign_row;
      for (std::int64_t r = 0; r < rows; ++r) {
        auto z = L::fma(L::load(in + r * stride) - mean, scale, shift) + L::load(add + r * stride);
        if (relu) {
          if (bits != nullptr) bits[r] = L::positive(z);
          z = L::max(z, zero);
        }
        put<L, Stream>(out + r * stride, z);
      }
    });
  };
  with_lanes(layout.block, [&]<int N>(Lanes<N>) {
    if (streams<Lanes<N>>(layout, y)) {
      pass.template operator()<N, true>();
    } else {
      pass.template operator()<N, false>();
    }
  });
}

void gradient_sums(int threads, const ImageLayout& layout, const Backward& in, float* d_residual,
                   bool accumulate, double* workspace) {
  const std::int64_t rows = layout.pixels(), stride = layout.block;
  double* sums = workspace;
  double* products = workspace + layout.batch * layout.channels();
  with_lanes(layout.block, [&]<int N>(Lanes<N>) {
    using L = Lanes<N>;
    with_mask(in.mask, [&]<ReluMask M>() {
      for_each_strip(threads, layout, N, [&](const Strip& strip) {
        const auto mean = L::load(in.channels.mean + strip.channel);
        const auto scale = L::load(in.channels.scale + strip.channel);
        const auto shift = L::load(in.channels.shift + strip.channel);
        const float* x = in.x + strip.offset;
        const float* dy = in.dy + strip.offset + strip.image * in.dy_gap;
        float* out = d_residual == nullptr ? nullptr : d_residual + strip.offset;
        const auto* bits = static_cast<const typename L::Bits*>(in.signs);
        if constexpr (M == ReluMask::kFromSigns) bits += strip.sign_row;
        double sum[16] = {}, product[16] = {};
        const auto row = [&](std::int64_t r, auto& a, auto& b) {
          const auto centred = L::load(x + r * stride) - mean;
          const auto g = masked<L, M>(L::load(dy + r * stride), centred, scale, shift, bits, r);
          a = a + g;
          b = L::fma(g, centred, b);
          return g;
        };
        if (out == nullptr) {
          sum_rows<L>(rows, N, sum, product,
                      [&](std::int64_t r, auto& a, auto& b) { row(r, a, b); });
        } else if (accumulate) {
          sum_rows<L>(rows, N, sum, product, [&](std::int64_t r, auto& a, auto& b) {
            const auto g = row(r, a, b);
            L::store(out + r * stride, L::load(out + r * stride) + g);
          });
        } else {
          sum_rows<L>(rows, N, sum, product, [&](std::int64_t r, auto& a, auto& b) {
            L::store(out + r * stride, row(r, a, b));
          });
        }
        std::copy_n(sum, N, sums + strip.partial);
        std::copy_n(product, N, products + strip.partial);
      });
    });
  });
}

void finish_gradient_sums(const ImageLayout& layout, const double* workspace, double* sum_g,
                          double* sum_g_x) {
  const std::int64_t channels = layout.channels();
  std::fill_n(sum_g, channels, 0.0);
  std::fill_n(sum_g_x, channels, 0.0);
  for (std::int64_t n = 0; n < layout.batch; ++n) {
    const double* sums = workspace + n * channels;
    const double* products = workspace + (layout.batch + n) * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      sum_g[c] += sums[c];
      sum_g_x[c] += products[c];
    }
  }
}

void gradient_apply(int threads, const ImageLayout& layout, const Backward& in, const Apply& apply,
                    float* dx, bool accumulate) {
  const std::int64_t rows = layout.pixels(), stride = layout.block;
  const auto pass = [&]<int N, ReluMask M, bool Stream>() {
    using L = Lanes<N>;
    for_each_strip(threads, layout, N, [&](const Strip& strip) {
      const auto mean = L::load(in.channels.mean + strip.channel);
      const auto scale = L::load(in.channels.scale + strip.channel);
      const auto shift = L::load(in.channels.shift + strip.channel);
      const auto a = L::load(apply.a + strip.channel);
      const auto b = L::load(apply.b + strip.channel);
      const auto c = L::load(apply.c + strip.channel);
      const float* x = in.x + strip.offset;
      const float* dy = in.dy + strip.offset + strip.image * in.dy_gap;
      float* out = dx + strip.offset;
      const auto* bits = static_cast<const typename L::Bits*>(in.signs);
      if constexpr (M == ReluMask::kFromSigns) bits += strip.sign_row;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto centred = L::load(x + r * stride) - mean;
        const auto g = masked<L, M>(L::load(dy + r * stride), centred, scale, shift, bits, r);
        auto v = L::fma(a, g, L::fma(c, centred, b));
        if (accumulate) v = v + L::load(out + r * stride);
        put<L, Stream>(out + r * stride, v);
      }
    });
  };
  with_lanes(layout.block, [&]<int N>(Lanes<N>) {
    // If dx is in place or accumulated, its lines are in cache already.
    const bool stream = dx != in.dy && !accumulate && streams<Lanes<N>>(layout, dx);
    with_mask(in.mask, [&]<ReluMask M>() {
      if (stream) {
        pass.template operator()<N, M, true>();
      } else {
        pass.template operator()<N, M, false>();
      }
    });
  });
}

}  // namespace rk::batchnorm_cpu
