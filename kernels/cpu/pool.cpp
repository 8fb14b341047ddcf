#include "kernels/cpu/pool.h"

#include "engine/base/parallel.h"
#include "kernels/simd.h"

#include <algorithm>
#include <cmath>

namespace rk::pool_cpu {
namespace {

// Channels handled together: a stack array of this many, whatever the layout's block.
constexpr std::int64_t kChunk = 16;

// Calls f(plane, first lane, lanes) for every plane and every chunk of its channels.
template <class F> void for_each_chunk(int threads, const ImageLayout& layout, F&& f) {
  parallel_for(threads, layout.planes(), [&](std::int64_t plane, int) {
    for (std::int64_t lane = 0; lane < layout.block; lane += kChunk) {
      f(plane, lane, std::min(kChunk, layout.block - lane));
    }
  });
}

// Calls f(plane, first lane) for every plane and every `lanes` of its channels.
template <class F>
void for_each_strip(int threads, const ImageLayout& layout, std::int64_t lanes, F&& f) {
  parallel_for(threads, layout.planes(), [&](std::int64_t plane, int) {
    for (std::int64_t lane = 0; lane < layout.block; lane += lanes) f(plane, lane);
  });
}

// Calls f(window element, offset of its pixel) for the elements of output (oh, ow) inside the
// image.
template <class F>
void for_each_pixel(const ImageLayout& x, const Window& w, std::int64_t oh, std::int64_t ow,
                    F&& f) {
  for (std::int64_t kh = 0; kh < w.kernel[0]; ++kh) {
    const std::int64_t h = oh * w.stride[0] + kh - w.padding[0];
    if (h < 0 || h >= x.height) continue;
    for (std::int64_t kw = 0; kw < w.kernel[1]; ++kw) {
      const std::int64_t c = ow * w.stride[1] + kw - w.padding[1];
      if (c < 0 || c >= x.width) continue;
      f(kh * w.kernel[1] + kw, (h * x.width + c) * x.block);
    }
  }
}

// Pixels of the window of output `row`, including those in the padding.
float window_size(const ImageLayout& x, const ImageLayout& y, const Window& w, std::int64_t row) {
  const auto along = [](std::int64_t out, std::int64_t size, std::int64_t kernel,
                        std::int64_t stride, std::int64_t padding) {
    const std::int64_t begin = out * stride - padding;
    return std::min(begin + kernel, size + padding) - begin;
  };
  return static_cast<float>(along(row / y.width, x.height, w.kernel[0], w.stride[0], w.padding[0]) *
                            along(row % y.width, x.width, w.kernel[1], w.stride[1], w.padding[1]));
}

// The gradient of a pooling, N lanes at a time: part(element of y, row of y, dy there) returns a
// function that maps an element of the window to the gradient of that element's pixel.
template <int N, class F>
void scatter(int threads, const ImageLayout& x, const ImageLayout& y, const Window& window,
             const float* dy, std::int64_t dy_gap, float* dx, bool accumulate, F&& part) {
  using L = Lanes<N>;
  for_each_strip(threads, y, N, [&](std::int64_t plane, std::int64_t lane) {
    const float* gradient = dy + plane / y.blocks * dy_gap;
    float* target = dx + plane * x.plane() + lane;
    if (!accumulate) {
      for (std::int64_t r = 0; r < x.pixels(); ++r) L::store(target + r * x.block, L::all(0));
    }
    for (std::int64_t r = 0; r < y.pixels(); ++r) {
      const std::int64_t from = plane * y.plane() + r * y.block + lane;
      const auto share = part(from, r, L::load(gradient + from));
      for_each_pixel(x, window, r / y.width, r % y.width,
                     [&](std::int64_t element, std::int64_t offset) {
                       L::store(target + offset, L::load(target + offset) + share(element));
                     });
    }
  });
}

double power(double x, double p) { return p == 3 ? x * x * x : std::pow(x, p); }

}  // namespace

void max_pool(int threads, const ImageLayout& x, const ImageLayout& y, const Window& window,
              const float* in, std::uint8_t* choice, float* out, std::int64_t y_gap) {
  with_lanes(y.block, [&]<int N>(Lanes<N>) {
    using L = Lanes<N>;
    for_each_strip(threads, y, N, [&](std::int64_t plane, std::int64_t lane) {
      const float* source = in + plane * x.plane() + lane;
      for (std::int64_t r = 0; r < y.pixels(); ++r) {
        // The first pixel initialises the maximum, whatever it holds. Every window has one, since
        // padding is at most half of the window.
        bool first = true;
        typename L::V best = L::all(0), winner = L::all(0);
        for_each_pixel(x, window, r / y.width, r % y.width,
                       [&](std::int64_t element, std::int64_t offset) {
                         const auto v = L::load(source + offset);
                         const auto number = L::all(static_cast<float>(element));
                         const auto better = L::greater(v, best);
                         best = first ? v : L::select(better, v, best);
                         winner = first ? number : L::select(better, number, winner);
                         first = false;
                       });
        const std::int64_t to = plane * y.plane() + r * y.block + lane;
        L::store(out + plane / y.blocks * y_gap + to, best);
        if (choice != nullptr) L::store_bytes(choice + to, winner);
      }
    });
  });
}

void max_pool_backward(int threads, const ImageLayout& x, const ImageLayout& y,
                       const Window& window, const std::uint8_t* choice, const float* dy, float* dx,
                       bool accumulate, std::int64_t dy_gap) {
  with_lanes(y.block, [&]<int N>(Lanes<N>) {
    using L = Lanes<N>;
    scatter<N>(threads, x, y, window, dy, dy_gap, dx, accumulate,
               [&](std::int64_t from, std::int64_t /*row*/, typename L::V g) {
                 return [=](std::int64_t element) {
                   return L::keep(L::equal(choice + from, static_cast<std::uint8_t>(element)), g);
                 };
               });
  });
}

void average_pool(int threads, const ImageLayout& x, const ImageLayout& y, const Window& window,
                  const float* in, float* out, std::int64_t y_gap) {
  with_lanes(y.block, [&]<int N>(Lanes<N>) {
    using L = Lanes<N>;
    for_each_strip(threads, y, N, [&](std::int64_t plane, std::int64_t lane) {
      const float* source = in + plane * x.plane() + lane;
      for (std::int64_t r = 0; r < y.pixels(); ++r) {
        typename L::V sum = L::all(0);
        for_each_pixel(x, window, r / y.width, r % y.width,
                       [&](std::int64_t /*element*/, std::int64_t offset) {
                         sum = sum + L::load(source + offset);
                       });
        L::store(out + plane / y.blocks * y_gap + plane * y.plane() + r * y.block + lane,
                 sum / L::all(window_size(x, y, window, r)));
      }
    });
  });
}

void average_pool_backward(int threads, const ImageLayout& x, const ImageLayout& y,
                           const Window& window, const float* dy, float* dx, bool accumulate,
                           std::int64_t dy_gap) {
  with_lanes(y.block, [&]<int N>(Lanes<N>) {
    using L = Lanes<N>;
    scatter<N>(threads, x, y, window, dy, dy_gap, dx, accumulate,
               [&](std::int64_t /*from*/, std::int64_t row, typename L::V g) {
                 const typename L::V share = g / L::all(window_size(x, y, window, row));
                 return [=](std::int64_t /*element*/) { return share; };
               });
  });
}

void global_pool(int threads, const ImageLayout& x, PoolKind kind, const Gem& gem, const float* in,
                 std::int64_t* best, float* out) {
  const std::int64_t rows = x.pixels();
  for_each_chunk(threads, x, [&](std::int64_t plane, std::int64_t lane, std::int64_t lanes) {
    const float* source = in + plane * x.plane() + lane;
    const std::int64_t to = plane * x.block + lane;  // (N, C): planes are ordered by image, group
    double sum[kChunk] = {};
    if (kind == PoolKind::kAverage) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t l = 0; l < lanes; ++l) {
          sum[l] += static_cast<double>(source[r * x.block + l]);
        }
      }
      for (std::int64_t l = 0; l < lanes; ++l) {
        out[to + l] = static_cast<float>(sum[l] / static_cast<double>(rows));
      }
    } else if (kind == PoolKind::kMax) {
      for (std::int64_t l = 0; l < lanes; ++l) {
        std::int64_t winner = 0;
        for (std::int64_t r = 1; r < rows; ++r) {
          if (source[r * x.block + l] > source[winner * x.block + l]) winner = r;
        }
        out[to + l] = source[winner * x.block + l];
        if (best != nullptr) best[to + l] = winner;
      }
    } else {
      // Values are divided by the maximum first, so that pow() neither overflows nor vanishes.
      double top[kChunk];
      std::fill_n(top, lanes, gem.epsilon);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t l = 0; l < lanes; ++l) {
          top[l] = std::max(top[l], static_cast<double>(source[r * x.block + l]));
        }
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t l = 0; l < lanes; ++l) {
          const double v = std::max(static_cast<double>(source[r * x.block + l]), gem.epsilon);
          sum[l] += power(v / top[l], gem.p);
        }
      }
      for (std::int64_t l = 0; l < lanes; ++l) {
        out[to + l] =
            static_cast<float>(top[l] * std::pow(sum[l] / static_cast<double>(rows), 1.0 / gem.p));
      }
    }
  });
}

void global_pool_backward(int threads, const ImageLayout& x, PoolKind kind, const Gem& gem,
                          const float* in, const float* out, const std::int64_t* best,
                          const float* dy, float* dx, bool accumulate) {
  const std::int64_t rows = x.pixels();
  for_each_chunk(threads, x, [&](std::int64_t plane, std::int64_t lane, std::int64_t lanes) {
    const std::int64_t from = plane * x.block + lane;
    const std::int64_t to = plane * x.plane() + lane;
    double factor[kChunk] = {};
    for (std::int64_t l = 0; l < lanes; ++l) {
      const double g = dy[from + l];
      factor[l] = kind == PoolKind::kMax ? g : g / static_cast<double>(rows);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t l = 0; l < lanes; ++l) {
        const std::int64_t at = to + r * x.block + l;
        double g = factor[l];
        if (kind == PoolKind::kMax && best[from + l] != r) g = 0;
        if (kind == PoolKind::kGem) {
          // GeM: dy/dx = (x / y)^(p-1) / rows.
          const double v = in[at], share = v / static_cast<double>(out[from + l]);
          g = v < gem.epsilon ? 0 : g * (gem.p == 3 ? share * share : std::pow(share, gem.p - 1));
        }
        dx[at] = accumulate ? dx[at] + static_cast<float>(g) : static_cast<float>(g);
      }
    }
  });
}

}  // namespace rk::pool_cpu
