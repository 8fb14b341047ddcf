#include "tests/host_gpu/cudnn/graph_loops.h"

#include "kernels/half_element.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

namespace rk {
namespace {

using host_gpu::Sum;
using Values = std::vector<double>;
using Tensor = Graph::Tensor;

// Where element i of a tensor lies, counted from its first.
std::size_t place(const Tensor& tensor, std::size_t i) {
  if (tensor.row_stride == 0) return i;
  const auto row = static_cast<std::size_t>(tensor.shape[3]);
  return i / row * static_cast<std::size_t>(tensor.row_stride) + i % row;
}

Values load(const Tensor& tensor, const void* data) {
  Values values(static_cast<std::size_t>(tensor.elements()));
  const auto each = [&](auto&& value) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(value(place(tensor, i)));
    }
  };
  switch (tensor.type) {
    case DType::kFloat16:
      each([halves = static_cast<const Float16*>(data)](auto at) {
        return from_float16(halves[at].bits);
      });
      break;
    case DType::kBfloat16:
      each([halves = static_cast<const Bfloat16*>(data)](auto at) {
        return from_bfloat16(halves[at].bits);
      });
      break;
    case DType::kUint8:
      each([bits = static_cast<const std::uint8_t*>(data)](auto at) {
        return bits[at / 8] >> (at % 8) & 1;
      });
      break;
    default: each([floats = static_cast<const float*>(data)](auto at) { return floats[at]; });
  }
  return values;
}

void store(const Tensor& tensor, const Values& values, void* data) {
  const auto each = [&](auto&& put) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(place(tensor, i), static_cast<float>(values[i]));
    }
  };
  switch (tensor.type) {
    case DType::kFloat16:
      each([halves = static_cast<Float16*>(data)](auto at, float value) {
        halves[at] = {to_float16(value)};
      });
      break;
    case DType::kBfloat16:
      each([halves = static_cast<Bfloat16*>(data)](auto at, float value) {
        halves[at] = {to_bfloat16(value)};
      });
      break;
    case DType::kUint8:
      std::fill_n(static_cast<std::byte*>(data), tensor.bytes(), std::byte{0});
      each([bits = static_cast<std::uint8_t*>(data)](auto at, float value) {
        if (value != 0) bits[at / 8] |= static_cast<std::uint8_t>(1U << (at % 8));
      });
      break;
    default:
      each([floats = static_cast<float*>(data)](auto at, float value) { floats[at] = value; });
  }
}

// Fills a result's elements with NaN, and nothing between its rows.
void spoil(const Tensor& tensor, void* data) {
  if (tensor.row_stride == 0) return host_gpu::fill_with_nan(data, tensor.bytes());
  const auto row = static_cast<std::size_t>(tensor.shape[3]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); i += row) {
    host_gpu::fill_with_nan(static_cast<std::byte*>(data) + place(tensor, i) * size_of(tensor.type),
                            row * size_of(tensor.type));
  }
}

// Adds multiples of other rows to a row, four at a time: the row is then loaded and stored a
// quarter as often.
class Combination {
 public:
  Combination(double* row, std::int64_t length) : row_(row), length_(length) {}
  Combination(const Combination&) = delete;
  Combination& operator=(const Combination&) = delete;
  ~Combination() {
    for (std::size_t t = 0; t < used_; ++t) {
      const double factor = factors_[t];
      const double* term = terms_[t];
#pragma omp simd
      for (std::int64_t i = 0; i < length_; ++i) row_[i] += factor * term[i];
    }
  }

  void add(double factor, const double* term) {
    factors_[used_] = factor;
    terms_[used_] = term;
    if (++used_ < factors_.size()) return;
    used_ = 0;
    // Not structured bindings, which clang++ does not capture in OpenMP's loops.
    const double f0 = factors_[0], f1 = factors_[1], f2 = factors_[2], f3 = factors_[3];
    const double *t0 = terms_[0], *t1 = terms_[1], *t2 = terms_[2], *t3 = terms_[3];
#pragma omp simd
    for (std::int64_t i = 0; i < length_; ++i) {
      row_[i] += (f0 * t0[i] + f1 * t1[i]) + (f2 * t2[i] + f3 * t3[i]);
    }
  }

 private:
  double* row_;
  std::int64_t length_;
  std::array<double, 4> factors_{};
  std::array<const double*, 4> terms_{};
  std::size_t used_ = 0;
};

using Rows = std::vector<const double*>;

// results[p][at] += the product of rows[p] and `other`, four rows at a time: a number of `other` is
// then loaded a quarter as often.
void add_products(const Rows& rows, const double* other, std::int64_t length,
                  const std::vector<double*>& results, std::int64_t at) {
  std::size_t p = 0;
  for (; p + 4 <= rows.size(); p += 4) {
    const double *r0 = rows[p], *r1 = rows[p + 1], *r2 = rows[p + 2], *r3 = rows[p + 3];
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (std::int64_t i = 0; i < length; ++i) {
      s0 += r0[i] * other[i];
      s1 += r1[i] * other[i];
      s2 += r2[i] * other[i];
      s3 += r3[i] * other[i];
    }
    results[p][at] += s0;
    results[p + 1][at] += s1;
    results[p + 2][at] += s2;
    results[p + 3][at] += s3;
  }
  for (; p < rows.size(); ++p) {
    const double* row = rows[p];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < length; ++i) sum += row[i] * other[i];
    results[p][at] += sum;
  }
}

// One tap of a convolution's window: the pixels of input and output that it joins, pair by pair,
// and its weights, [outputs, inputs] of which a row begins every `weight_stride` numbers.
struct Tap {
  std::vector<double*> in, out;
  double* weight;
  std::int64_t weight_stride, inputs, outputs;

  double* weights(std::int64_t o) const { return weight + o * weight_stride; }
};

void add_outputs(const Tap& tap) {
  const Rows in(tap.in.begin(), tap.in.end());
  for (std::int64_t o = 0; o < tap.outputs; ++o) {
    add_products(in, tap.weights(o), tap.inputs, tap.out, o);
  }
}

void add_input_gradients(const Tap& tap) {
  constexpr std::int64_t kChannels = 8;  // at once: their weights stay in the cache
  for (std::int64_t first = 0; first < tap.outputs; first += kChannels) {
    const std::int64_t end = std::min(first + kChannels, tap.outputs);
    for (std::size_t p = 0; p < tap.in.size(); ++p) {
      Combination sum(tap.in[p], tap.inputs);
      for (std::int64_t o = first; o < end; ++o) {
        const double gradient = tap.out[p][o];
        if (gradient != 0) sum.add(gradient, tap.weights(o));  // half are 0, behind ReLU
      }
    }
  }
}

void add_weight_gradients(const Tap& tap) {
  for (std::int64_t o = 0; o < tap.outputs; ++o) {
    Combination sum(tap.weights(o), tap.inputs);
    for (std::size_t p = 0; p < tap.in.size(); ++p) {
      const double gradient = tap.out[p][o];
      if (gradient != 0) sum.add(gradient, tap.in[p]);
    }
  }
}

// One run of a graph.
class Run {
 public:
  Run(const Graph& graph, const std::vector<void*>& places, double factor)
      : graph_(graph), values_(graph.tensors().size()) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Tensor& tensor = graph.tensors()[i];
      if (tensor.role != GraphRole::kNone && !tensor.written) {
        values_[i] = load(tensor, places[i]);
      } else {
        values_[i].resize(static_cast<std::size_t>(tensor.elements()));
      }
    }
    for (const Graph::Operation& operation : graph.operations()) compute(operation);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Tensor& tensor = graph.tensors()[i];
      if (!tensor.written) continue;
      if (tensor.type != DType::kUint8) {
        for (double& value : values_[i]) value *= factor;
      }
      store(tensor, values_[i], places[i]);
    }
  }

 private:
  Values& at(Graph::Value value) { return values_[static_cast<std::size_t>(value)]; }
  const Shape& shape(Graph::Value value) const { return graph_.tensor(value).shape; }

  void compute(const Graph::Operation& operation) {
    const auto& in = operation.inputs;
    const Graph::Value out = operation.outputs[0];
    const auto channels = static_cast<std::size_t>(std::max<std::int64_t>(1, shape(in[0])[3]));
    // Elements one by one: f(element, channel).
    const auto each = [&](auto&& f) {
      for (std::size_t i = 0; i < at(out).size(); ++i) at(out)[i] = f(i, i % channels);
    };
    const Values &a = at(in[0]), &b = at(in.back());
    switch (operation.op) {
      case Graph::Op::kConv:
      case Graph::Op::kDgrad:
      case Graph::Op::kWgrad: return convolution(operation);
      case Graph::Op::kBatchNorm: return batchnorm(operation);
      case Graph::Op::kBatchNormGradient: return batchnorm_gradient(operation);
      case Graph::Op::kChannelSums: return channel_sums(operation);
      case Graph::Op::kMaskedSums: return masked_sums(operation);
      case Graph::Op::kScale: return each([&](auto i, auto c) { return a[i] * b[c]; });
      case Graph::Op::kBias: return each([&](auto i, auto c) { return a[i] + b[c]; });
      case Graph::Op::kAdd: return each([&](auto i, auto) { return a[i] + b[i]; });
      case Graph::Op::kRelu:  // NaN stays, as the front end asks of the library
        return each([&](auto i, auto) { return a[i] <= 0 ? 0 : a[i]; });
      case Graph::Op::kPositive: return each([&](auto i, auto) { return a[i] > 0 ? 1 : 0; });
      case Graph::Op::kReluGradient: return each([&](auto i, auto) { return b[i] > 0 ? a[i] : 0; });
      case Graph::Op::kMask: return each([&](auto i, auto) { return b[i] != 0 ? a[i] : 0; });
      case Graph::Op::kNormalize: {
        const Values &gamma = at(in[1]), &beta = at(in[2]), &mean = at(in[3]), &inv_std = at(in[4]);
        return each(
            [&](auto i, auto c) { return (a[i] - mean[c]) * (inv_std[c] * gamma[c]) + beta[c]; });
      }
    }
  }

  struct Pixels {
    std::int64_t out, in;
  };

  // The pairs of pixels that the tap at row kh and column kw of the window joins.
  std::vector<Pixels> joined_by(const Graph::Operation& operation, std::int64_t kh,
                                std::int64_t kw) const {
    const auto [x, w, y] = Graph::convolution(operation);
    const Shape &in = shape(x), &out = shape(y);
    const auto& [stride, padding] = operation.window;
    std::vector<Pixels> pairs;
    for (std::int64_t n = 0; n < in[0]; ++n) {
      for (std::int64_t oh = 0; oh < out[1]; ++oh) {
        for (std::int64_t ow = 0; ow < out[2]; ++ow) {
          const std::int64_t row = oh * stride[0] + kh - padding[0];
          const std::int64_t column = ow * stride[1] + kw - padding[1];
          if (row < 0 || row >= in[1] || column < 0 || column >= in[2]) continue;
          pairs.push_back({(n * out[1] + oh) * out[2] + ow, (n * in[1] + row) * in[2] + column});
        }
      }
    }
    return pairs;
  }

  void convolution(const Graph::Operation& operation) {
    const auto [x, w, y] = Graph::convolution(operation);
    const std::int64_t inputs = shape(w)[3], outputs = shape(w)[0];
    const std::int64_t taps = shape(w)[1] * shape(w)[2];
    std::vector<Values> exact;  // other operations read the same tensors in float32
    if (graph_.precision() == Precision::kTf32) {
      for (const Graph::Value input : operation.inputs) {
        exact.push_back(at(input));
        std::ranges::transform(at(input), at(input).begin(), host_gpu::as_tf32);
      }
    }
    double *image = at(x).data(), *weight = at(w).data(), *result = at(y).data();
    constexpr std::size_t kPixels = 8;  // at once: they stay in the cache while all weights pass
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::vector<Pixels> pairs = joined_by(operation, t / shape(w)[2], t % shape(w)[2]);
      Tap tap{{}, {}, weight + t * inputs, taps * inputs, inputs, outputs};
      for (std::size_t first = 0; first < pairs.size(); first += kPixels) {
        tap.in.clear();
        tap.out.clear();
        for (const Pixels& pair :
             std::span(pairs).subspan(first).first(std::min(kPixels, pairs.size() - first))) {
          tap.in.push_back(image + pair.in * inputs);
          tap.out.push_back(result + pair.out * outputs);
        }
        switch (operation.op) {
          case Graph::Op::kWgrad: add_weight_gradients(tap); break;
          case Graph::Op::kDgrad: add_input_gradients(tap); break;
          default: add_outputs(tap);
        }
      }
    }
    for (std::size_t i = 0; i < exact.size(); ++i) at(operation.inputs[i]) = std::move(exact[i]);
    Values& sums = at(operation.outputs[0]);
    const auto products = static_cast<double>(shape(y).elements() * taps * inputs);
    host_gpu::reorder(sums, products / static_cast<double>(sums.size()));
  }

  void channel_sums(const Graph::Operation& operation) {
    const Values& x = at(operation.inputs[0]);
    Values &sum = at(operation.outputs[0]), &squares = at(operation.outputs[1]);
    const std::size_t channels = sum.size();
    std::vector<Sum> of_values(channels), of_squares(channels);
    for (std::size_t i = 0; i < x.size(); ++i) {
      of_values[i % channels].add(x[i]);
      of_squares[i % channels].add(x[i] * x[i]);
    }
    std::ranges::transform(of_values, sum.begin(), &Sum::total);
    std::ranges::transform(of_squares, squares.begin(), &Sum::total);
  }

  void batchnorm(const Graph::Operation& operation) {
    const auto& [in, out] = std::tie(operation.inputs, operation.outputs);
    const Values &x = at(in[0]), &gamma = at(in[1]), &beta = at(in[2]);
    const std::size_t channels = gamma.size();
    const std::size_t rows = x.size() / channels;
    const auto count = static_cast<double>(rows);
    const double momentum = operation.momentum;
    for (std::size_t c = 0; c < channels; ++c) {
      Sum sum, squares;
      for (std::size_t i = c; i < x.size(); i += channels) sum.add(x[i]);
      const double mean = sum.total() / count;
      for (std::size_t i = c; i < x.size(); i += channels) {
        squares.add((x[i] - mean) * (x[i] - mean));
      }
      const double inv_std = 1 / std::sqrt(squares.total() / count + operation.epsilon);
      const double variance = squares.total() / std::max(count - 1, 1.0);
      for (std::size_t i = c; i < x.size(); i += channels) {
        at(out[0])[i] = (x[i] - mean) * inv_std * gamma[c] + beta[c];
      }
      at(out[1])[c] = mean;
      at(out[2])[c] = inv_std;
      at(out[3])[c] = (1 - momentum) * at(in[3])[c] + momentum * mean;
      at(out[4])[c] = (1 - momentum) * at(in[4])[c] + momentum * variance;
    }
  }

  void batchnorm_gradient(const Graph::Operation& operation) {
    const auto& [in, out] = std::tie(operation.inputs, operation.outputs);
    const Values &dy = at(in[0]), &x = at(in[1]), &gamma = at(in[2]), &mean = at(in[3]);
    const Values& inv_std = at(in[4]);
    const std::size_t channels = gamma.size();
    const std::size_t rows = x.size() / channels;
    const auto count = static_cast<double>(rows);
    for (std::size_t c = 0; c < channels; ++c) {
      const auto normalised = [&](std::size_t i) { return (x[i] - mean[c]) * inv_std[c]; };
      Sum of_dy, of_products;
      for (std::size_t i = c; i < x.size(); i += channels) {
        of_dy.add(dy[i]);
        of_products.add(dy[i] * normalised(i));
      }
      const double sum = of_dy.total(), product = of_products.total();
      const double scale = inv_std[c] * gamma[c];
      for (std::size_t i = c; i < x.size(); i += channels) {
        at(out[0])[i] = scale * (dy[i] - sum / count - normalised(i) * product / count);
      }
      at(out[1])[c] = product;
      at(out[2])[c] = sum;
    }
  }

  void masked_sums(const Graph::Operation& operation) {
    const auto& [in, out] = std::tie(operation.inputs, operation.outputs);
    const Values &dy = at(in[0]), &x = at(in[1]), &gamma = at(in[2]), &beta = at(in[3]);
    const Values &mean = at(in[4]), &inv_std = at(in[5]);
    Values &g = at(out[0]), &dgamma = at(out[1]), &dbeta = at(out[2]);
    const std::size_t channels = gamma.size();
    std::vector<Sum> of_products(channels), of_g(channels);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i % channels;
      const double normalised = (x[i] - mean[c]) * inv_std[c];
      const double residual = in.size() > 6 ? at(in[6])[i] : 0;
      g[i] = normalised * gamma[c] + beta[c] + residual > 0 ? dy[i] : 0;
      of_products[c].add(g[i] * normalised);
      of_g[c].add(g[i]);
    }
    std::ranges::transform(of_products, dgamma.begin(), &Sum::total);
    std::ranges::transform(of_g, dbeta.begin(), &Sum::total);
    const std::size_t rows = x.size() / channels;
    const auto count = static_cast<double>(rows);
    for (std::size_t c = 0; c < channels; ++c) {
      const double scale = gamma[c] * inv_std[c];
      at(out[3])[c] = scale;
      at(out[4])[c] = -scale * inv_std[c] * dgamma[c] / count;
      at(out[5])[c] = scale * (mean[c] * inv_std[c] * dgamma[c] - dbeta[c]) / count;
    }
  }

  const Graph& graph_;
  std::vector<Values> values_;  // by tensor
};

}  // namespace

namespace host_gpu {

void compute(const Graph& graph, const std::vector<void*>& places, double factor) {
  // Like an engine that works in several passes: first overwrites a result's memory, unless it is
  // also read.
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (graph.tensors()[i].written && std::ranges::count(places, places[i]) == 1) {
      spoil(graph.tensors()[i], places[i]);
    }
  }
  Run(graph, places, factor);
}

}  // namespace host_gpu
}  // namespace rk
