#include "kernels/pool_cpu.h"

#include "engine/parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rk::pool_cpu {
namespace {

// Channels handled together: a stack array of this many, whatever the layout's width.
constexpr std::int64_t kChunk = 16;

// f(plane, first lane, lanes) for every plane and every chunk of its channels.
template <class F>
void for_each_chunk(int threads, const ImageLayout& layout, F&& f) {
  parallel_for(threads, layout.planes(), [&](std::int64_t plane, int) {
    for (std::int64_t lane = 0; lane < layout.width; lane += kChunk) {
      f(plane, lane, std::min(kChunk, layout.width - lane));
    }
  });
}

// Calls f(window element, offset of its pixel) for the elements of output (oh, ow) inside the image.
template <class F>
void for_each_pixel(const ImageLayout& x, const Window& w, std::int64_t oh, std::int64_t ow, F&& f) {
  for (std::int64_t kh = 0; kh < w.kernel[0]; ++kh) {
    const std::int64_t h = oh * w.stride[0] + kh - w.padding[0];
    if (h < 0 || h >= x.height) continue;
    for (std::int64_t kw = 0; kw < w.kernel[1]; ++kw) {
      const std::int64_t c = ow * w.stride[1] + kw - w.padding[1];
      if (c < 0 || c >= x.columns) continue;
      f(kh * w.kernel[1] + kw, (h * x.columns + c) * x.width);
    }
  }
}

double power(double x, double p) { return p == 3 ? x * x * x : std::pow(x, p); }

}  // namespace

void max_pool(int threads, const ImageLayout& x, const ImageLayout& y, const Window& window,
              const float* in, std::uint8_t* choice, float* out) {
  for_each_chunk(threads, y, [&](std::int64_t plane, std::int64_t lane, std::int64_t lanes) {
    const float* source = in + plane * x.plane() + lane;
    for (std::int64_t r = 0; r < y.rows(); ++r) {
      float best[kChunk];
      int winner[kChunk];
      std::fill_n(best, kChunk, -std::numeric_limits<float>::infinity());
      std::fill_n(winner, kChunk, 255);
      for_each_pixel(x, window, r / y.columns, r % y.columns,
                     [&](std::int64_t element, std::int64_t offset) {
                       const float* p = source + offset;
                       const auto number = static_cast<int>(element);
#pragma omp simd
                       for (std::int64_t l = 0; l < lanes; ++l) {
                         // The first element wins whatever it holds, minus infinity or NaN too.
                         const bool better = p[l] > best[l] || winner[l] == 255;
                         best[l] = better ? p[l] : best[l];
                         winner[l] = better ? number : winner[l];
                       }
                     });
      const std::int64_t to = plane * y.plane() + r * y.width + lane;
      for (std::int64_t l = 0; l < lanes; ++l) out[to + l] = best[l];
      if (choice == nullptr) continue;
      for (std::int64_t l = 0; l < lanes; ++l) choice[to + l] = static_cast<std::uint8_t>(winner[l]);
    }
  });
}

void max_pool_backward(int threads, const ImageLayout& x, const ImageLayout& y,
                       const Window& window, const std::uint8_t* choice, const float* dy, float* dx,
                       bool accumulate) {
  for_each_chunk(threads, y, [&](std::int64_t plane, std::int64_t lane, std::int64_t lanes) {
    float* target = dx + plane * x.plane() + lane;
    if (!accumulate) {
      for (std::int64_t r = 0; r < x.rows(); ++r) std::fill_n(target + r * x.width, lanes, 0.0F);
    }
    for (std::int64_t r = 0; r < y.rows(); ++r) {
      const std::int64_t from = plane * y.plane() + r * y.width + lane;
      const float* g = dy + from;
      const std::uint8_t* winner = choice + from;
      for_each_pixel(x, window, r / y.columns, r % y.columns,
                     [&](std::int64_t element, std::int64_t offset) {
                       float* p = target + offset;
#pragma omp simd
                       for (std::int64_t l = 0; l < lanes; ++l) {
                         p[l] += winner[l] == element ? g[l] : 0.0F;
                       }
                     });
    }
  });
}

void global_pool(int threads, const ImageLayout& x, Global kind, const Gem& gem, const float* in,
                 std::int64_t* best, float* out) {
  const std::int64_t rows = x.rows();
  for_each_chunk(threads, x, [&](std::int64_t plane, std::int64_t lane, std::int64_t lanes) {
    const float* source = in + plane * x.plane() + lane;
    const std::int64_t to = plane * x.width + lane;  // (N, C): planes are ordered by image, group
    double sum[kChunk] = {};
    if (kind == Global::kAverage) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t l = 0; l < lanes; ++l) {
          sum[l] += static_cast<double>(source[r * x.width + l]);
        }
      }
      for (std::int64_t l = 0; l < lanes; ++l) {
        out[to + l] = static_cast<float>(sum[l] / static_cast<double>(rows));
      }
    } else if (kind == Global::kMax) {
      for (std::int64_t l = 0; l < lanes; ++l) {
        std::int64_t winner = 0;
        for (std::int64_t r = 1; r < rows; ++r) {
          if (source[r * x.width + l] > source[winner * x.width + l]) winner = r;
        }
        out[to + l] = source[winner * x.width + l];
        if (best != nullptr) best[to + l] = winner;
      }
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t l = 0; l < lanes; ++l) {
          sum[l] += power(std::max(static_cast<double>(source[r * x.width + l]), gem.epsilon), gem.p);
        }
      }
      for (std::int64_t l = 0; l < lanes; ++l) {
        out[to + l] =
            static_cast<float>(std::pow(sum[l] / static_cast<double>(rows), 1.0 / gem.p));
      }
    }
  });
}

void global_pool_backward(int threads, const ImageLayout& x, Global kind, const Gem& gem,
                          const float* in, const float* out, const std::int64_t* best,
                          const float* dy, float* dx, bool accumulate) {
  const std::int64_t rows = x.rows();
  for_each_chunk(threads, x, [&](std::int64_t plane, std::int64_t lane, std::int64_t lanes) {
    const std::int64_t from = plane * x.width + lane;
    const std::int64_t to = plane * x.plane() + lane;
    double factor[kChunk] = {};
    for (std::int64_t l = 0; l < lanes; ++l) {
      const double g = dy[from + l];
      // GeM: dy/dx = y^(1-p) x^(p-1) / rows.
      factor[l] = kind == Global::kMax ? g : g / static_cast<double>(rows);
      if (kind == Global::kGem) factor[l] *= std::pow(static_cast<double>(out[from + l]), 1 - gem.p);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t l = 0; l < lanes; ++l) {
        const std::int64_t at = to + r * x.width + l;
        double g = factor[l];
        if (kind == Global::kMax && best[from + l] != r) g = 0;
        if (kind == Global::kGem) {
          const double v = in[at];
          g = v < gem.epsilon ? 0 : g * (gem.p == 3 ? v * v : std::pow(v, gem.p - 1));
        }
        dx[at] = accumulate ? dx[at] + static_cast<float>(g) : static_cast<float>(g);
      }
    }
  });
}

}  // namespace rk::pool_cpu
