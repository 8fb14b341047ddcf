// In place of layers/cudnn/graph.cpp: the graphs of convolutions and batch normalisations as
// plain loops, added up in double and rounded once. Stricter than cuDNN in what it is given: every
// tensor of the kind whole and in device memory, none where a result goes.
#include "engine/base/error.h"
#include "engine/device/cuda/context.h"
#include "kernels/half_element.h"
#include "layers/graphs/graph_run.h"
#include "tests/host_gpu/device/memory.h"
#include "tests/host_gpu/device/stream.h"
#include "tests/host_gpu/gpu_graph_log.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace rk {
namespace {

float read(Precision precision, const void* data, std::int64_t i) {
  switch (image_type(precision)) {
    case DType::kFloat16: return from_float16(static_cast<const Float16*>(data)[i].bits);
    case DType::kBfloat16: return from_bfloat16(static_cast<const Bfloat16*>(data)[i].bits);
    default: return static_cast<const float*>(data)[i];
  }
}

void write(Precision precision, void* data, std::int64_t i, double value) {
  const auto rounded = static_cast<float>(value);
  switch (image_type(precision)) {
    case DType::kFloat16: static_cast<Float16*>(data)[i] = {to_float16(rounded)}; return;
    case DType::kBfloat16: static_cast<Bfloat16*>(data)[i] = {to_bfloat16(rounded)}; return;
    default: static_cast<float*>(data)[i] = rounded;
  }
}

std::vector<GraphSpec>& log() {
  static std::vector<GraphSpec> built;
  return built;
}

std::set<GraphKind>& refused() {
  static std::set<GraphKind> kinds;
  return kinds;
}

// f(output pixel, input pixel, tap) for every pair of pixels that a tap joins.
template <class F> void for_each_tap(const GraphSpec& s, F&& f) {
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t oh = 0; oh < s.out_h(); ++oh) {
      for (std::int64_t ow = 0; ow < s.out_w(); ++ow) {
        for (std::int64_t kh = 0; kh < s.kernel[0]; ++kh) {
          for (std::int64_t kw = 0; kw < s.kernel[1]; ++kw) {
            const std::int64_t h = oh * s.stride[0] + kh - s.padding[0];
            const std::int64_t w = ow * s.stride[1] + kw - s.padding[1];
            if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
            f((n * s.out_h() + oh) * s.out_w() + ow, (n * s.h + h) * s.w + w,
              kh * s.kernel[1] + kw);
          }
        }
      }
    }
  }
}

std::vector<float> widened(Precision precision, const void* data, std::int64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] = read(precision, data, i);
  }
  return out;
}

}  // namespace

namespace host_gpu {
const std::vector<GraphSpec>& graphs_built() { return log(); }
void forget_graphs() { log().clear(); }
void refuse_graphs(std::set<GraphKind> kinds) { refused() = std::move(kinds); }
}  // namespace host_gpu

struct GpuGraph::Impl {
  CudaStream stream = nullptr;
  GraphSpec spec;
  std::map<GraphRole, void*> places;
  std::string engine = "loops";

  void* at(GraphRole role) const { return places.at(role); }
  bool has(GraphRole role) const { return places.contains(role); }
  float* floats(GraphRole role) const { return static_cast<float*>(at(role)); }
  std::vector<float> image(GraphRole role, std::int64_t count) const {
    return widened(spec.precision, at(role), count);
  }

  void forward() const {
    const std::int64_t pixels = spec.n * spec.out_h() * spec.out_w(), outputs = spec.out_channels;
    const auto x = widened(spec.precision, at(GraphRole::kX), spec.n * spec.h * spec.w * spec.c);
    const auto w = widened(spec.precision, at(GraphRole::kW), outputs * spec.taps() * spec.c);
    std::vector<double> y(static_cast<std::size_t>(pixels * outputs), 0.0);
    for_each_tap(spec, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const float* row = w.data() + (o * spec.taps() + tap) * spec.c;
        const float* pixel = x.data() + in * spec.c;
        double sum = 0;
        for (std::int64_t c = 0; c < spec.c; ++c) {
          sum += static_cast<double>(pixel[c]) * static_cast<double>(row[c]);
        }
        y[static_cast<std::size_t>(out * outputs + o)] += sum;
      }
    });
    for (std::int64_t i = 0; i < pixels * outputs; ++i) {
      double value = y[static_cast<std::size_t>(i)];
      if (has(GraphRole::kBias)) {
        value += static_cast<double>(read(spec.precision, at(GraphRole::kBias), i % outputs));
      }
      if (has(GraphRole::kResidual)) {
        value += static_cast<double>(read(spec.precision, at(GraphRole::kResidual), i));
      }
      const bool relu = spec.kind == GraphKind::kConvolutionBiasRelu ||
                        spec.kind == GraphKind::kConvolutionBiasAddRelu;
      if (relu && !(value > 0)) value = 0;
      write(spec.precision, at(GraphRole::kY), i, value);
    }
    if (!has(GraphRole::kSum)) return;
    for (std::int64_t o = 0; o < outputs; ++o) {
      double sum = 0, squares = 0;
      for (std::int64_t p = 0; p < pixels; ++p) {
        const double value = y[static_cast<std::size_t>(p * outputs + o)];
        sum += value;
        squares += value * value;
      }
      floats(GraphRole::kSum)[o] = static_cast<float>(sum);
      floats(GraphRole::kSquares)[o] = static_cast<float>(squares);
    }
  }

  void batchnorm() const {
    const std::int64_t channels = spec.out_channels, rows = spec.n * spec.h * spec.w;
    const auto count = static_cast<double>(rows);
    const auto x = image(GraphRole::kX, rows * channels);
    const bool relu = spec.kind != GraphKind::kBatchNorm;
    if (has(GraphRole::kSigns)) {
      std::fill_n(static_cast<std::uint8_t*>(at(GraphRole::kSigns)), (rows * channels + 7) / 8, 0);
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto value = [&](std::int64_t row) {
        return static_cast<double>(x[static_cast<std::size_t>(row * channels + c)]);
      };
      double mean = 0, squares = 0;
      for (std::int64_t r = 0; r < rows; ++r) mean += value(r) / count;
      for (std::int64_t r = 0; r < rows; ++r) squares += (value(r) - mean) * (value(r) - mean);
      const double inv_std = 1 / std::sqrt(squares / count + kGraphEpsilon);
      const auto advanced = [](float before, double now) {
        return static_cast<float>((1 - kGraphMomentum) * static_cast<double>(before) +
                                  kGraphMomentum * now);
      };
      floats(GraphRole::kMean)[c] = static_cast<float>(mean);
      floats(GraphRole::kInvStd)[c] = static_cast<float>(inv_std);
      floats(GraphRole::kNextMean)[c] = advanced(floats(GraphRole::kRunningMean)[c], mean);
      floats(GraphRole::kNextVariance)[c] =
          advanced(floats(GraphRole::kRunningVariance)[c], squares / std::max(count - 1, 1.0));
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t i = r * channels + c;
        double y = (value(r) - mean) * inv_std * static_cast<double>(floats(GraphRole::kGamma)[c]) +
                   static_cast<double>(floats(GraphRole::kBeta)[c]);
        if (has(GraphRole::kResidual)) {
          y += static_cast<double>(read(spec.precision, at(GraphRole::kResidual), i));
        }
        if (relu && !(y > 0)) y = 0;
        write(spec.precision, at(GraphRole::kY), i, y);
        if (has(GraphRole::kSigns) && y > 0) {
          static_cast<std::uint8_t*>(at(GraphRole::kSigns))[i / 8] |=
              static_cast<std::uint8_t>(1U << (i % 8));
        }
      }
    }
  }

  // The gradient that the ReLU lets through to element i, a channel c.
  double masked_dy(std::int64_t i, std::int64_t c) const {
    const auto dy = static_cast<double>(read(spec.precision, at(GraphRole::kDy), i));
    if (spec.kind == GraphKind::kBatchNormReluGradient) {
      const double y =
          (static_cast<double>(read(spec.precision, at(GraphRole::kX), i)) -
           static_cast<double>(floats(GraphRole::kMean)[c])) *
              static_cast<double>(floats(GraphRole::kInvStd)[c] * floats(GraphRole::kGamma)[c]) +
          static_cast<double>(floats(GraphRole::kBeta)[c]);
      return y > 0 ? dy : 0;
    }
    if (!has(GraphRole::kSigns)) return dy;
    const std::uint8_t signs = static_cast<const std::uint8_t*>(at(GraphRole::kSigns))[i / 8];
    return (signs >> (i % 8) & 1) != 0 ? dy : 0;
  }

  void batchnorm_gradient() const {
    const std::int64_t channels = spec.out_channels, rows = spec.n * spec.h * spec.w;
    const auto count = static_cast<double>(rows);
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto inv_std = static_cast<double>(floats(GraphRole::kInvStd)[c]);
      const auto normalised = [&](std::int64_t i) {
        return (static_cast<double>(read(spec.precision, at(GraphRole::kX), i)) -
                static_cast<double>(floats(GraphRole::kMean)[c])) *
               inv_std;
      };
      double sum = 0, product = 0;
      for (std::int64_t i = c; i < rows * channels; i += channels) {
        const double dy = masked_dy(i, c);
        sum += dy;
        product += dy * normalised(i);
        if (has(GraphRole::kMaskedDy)) write(spec.precision, at(GraphRole::kMaskedDy), i, dy);
      }
      floats(GraphRole::kDBeta)[c] = static_cast<float>(sum);
      floats(GraphRole::kDGamma)[c] = static_cast<float>(product);
      const double scale = inv_std * static_cast<double>(floats(GraphRole::kGamma)[c]);
      for (std::int64_t i = c; i < rows * channels; i += channels) {
        const double dx = masked_dy(i, c) - sum / count - normalised(i) * product / count;
        write(spec.precision, at(GraphRole::kDx), i, scale * dx);
      }
    }
  }

  void weight_gradient() const {
    const std::int64_t pixels = spec.n * spec.out_h() * spec.out_w(), outputs = spec.out_channels;
    const auto x = widened(spec.precision, at(GraphRole::kX), spec.n * spec.h * spec.w * spec.c);
    const auto dy = widened(spec.precision, at(GraphRole::kDy), pixels * outputs);
    std::vector<double> dw(static_cast<std::size_t>(outputs * spec.taps() * spec.c), 0.0);
    for_each_tap(spec, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const auto g = static_cast<double>(dy[static_cast<std::size_t>(out * outputs + o)]);
        if (g == 0) continue;
        double* row = dw.data() + (o * spec.taps() + tap) * spec.c;
        const float* pixel = x.data() + in * spec.c;
        for (std::int64_t c = 0; c < spec.c; ++c) row[c] += g * static_cast<double>(pixel[c]);
      }
    });
    for (std::size_t i = 0; i < dw.size(); ++i) {
      write(spec.precision, at(GraphRole::kDw), static_cast<std::int64_t>(i), dw[i]);
    }
  }

  void input_gradient() const {
    const std::int64_t pixels = spec.n * spec.out_h() * spec.out_w(), outputs = spec.out_channels;
    const std::int64_t elements = spec.n * spec.h * spec.w * spec.c;
    const auto w = widened(spec.precision, at(GraphRole::kW), outputs * spec.taps() * spec.c);
    const auto dy = widened(spec.precision, at(GraphRole::kDy), pixels * outputs);
    // As an engine that works in several passes: the result's place is written first.
    std::vector<double> dx(static_cast<std::size_t>(elements), 0.0);
    for (std::int64_t i = 0; i < elements; ++i) write(spec.precision, at(GraphRole::kDx), i, 0.0);
    for_each_tap(spec, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const auto g = static_cast<double>(dy[static_cast<std::size_t>(out * outputs + o)]);
        if (g == 0) continue;
        const float* row = w.data() + (o * spec.taps() + tap) * spec.c;
        double* pixel = dx.data() + in * spec.c;
        for (std::int64_t c = 0; c < spec.c; ++c) pixel[c] += g * static_cast<double>(row[c]);
      }
    });
    for (std::int64_t i = 0; i < elements; ++i) {
      double value = dx[static_cast<std::size_t>(i)];
      if (has(GraphRole::kOthers)) {
        value += static_cast<double>(read(spec.precision, at(GraphRole::kOthers), i));
      }
      if (has(GraphRole::kX) && !(read(spec.precision, at(GraphRole::kX), i) > 0)) {
        value = 0;
      }
      write(spec.precision, at(GraphRole::kDx), i, value);
    }
  }

  void run() const {
    switch (spec.kind) {
      case GraphKind::kWeightGradient: return weight_gradient();
      case GraphKind::kInputGradient:
      case GraphKind::kInputGradientAdd:
      case GraphKind::kInputGradientRelu:
      case GraphKind::kInputGradientAddRelu: return input_gradient();
      case GraphKind::kBatchNorm:
      case GraphKind::kBatchNormRelu:
      case GraphKind::kBatchNormAddRelu: return batchnorm();
      case GraphKind::kBatchNormGradient:
      case GraphKind::kBatchNormReluGradient:
      case GraphKind::kBatchNormAddReluGradient: return batchnorm_gradient();
      default: return forward();
    }
  }
};

// Made by who first sets plans.
struct CudnnHandle {
  GpuPlans plans;
};

GpuGraph::GpuGraph() = default;
GpuGraph::GpuGraph(const Context& context, const GraphSpec& spec)
    : impl_(std::make_unique<Impl>()) {
  expect(context.on_gpu(), "[gpu graph] expected a GPU");
  host_gpu::refuse_in_capture("a graph's plan");
  if (refused().contains(spec.kind)) fail<DeviceError>("cuDNN: {}: no engine", spec.text());
  impl_->stream = context.cuda().stream();
  impl_->spec = spec;
  log().push_back(spec);
}
bool GpuGraph::exists(const Context&, const GraphSpec&) { return true; }
GpuGraph::~GpuGraph() = default;
GpuGraph::GpuGraph(GpuGraph&&) noexcept = default;
GpuGraph& GpuGraph::operator=(GpuGraph&&) noexcept = default;

std::size_t GpuGraph::workspace_bytes() const { return 64; }
const std::string& GpuGraph::engine() const { return impl_->engine; }

void GpuGraph::bind(std::initializer_list<Place> places, void* workspace) {
  impl_->places.clear();
  const std::vector<GraphTensor> tensors = tensors_of(impl_->spec);
  for (const GraphTensor& tensor : tensors) {
    const auto* place = std::ranges::find(places, tensor.role, &Place::role);
    expect(place != places.end() && place->data != nullptr, "[gpu graph] {} lacks tensor {}",
           impl_->spec.text(), static_cast<int>(tensor.role));
    host_gpu::expect_kind(host_gpu::Kind::kDevice, place->data,
                          static_cast<std::size_t>(tensor.elements) * size_of(tensor.type),
                          "a graph's tensor");
    impl_->places[tensor.role] = const_cast<void*>(place->data);
  }
  // No other tensor lies where a result does, but the running statistics where the advanced ones
  // do.
  const auto in_place = [](GraphRole role, GraphRole result) {
    return (role == GraphRole::kRunningMean && result == GraphRole::kNextMean) ||
           (role == GraphRole::kRunningVariance && result == GraphRole::kNextVariance);
  };
  for (const GraphTensor& result : tensors) {
    if (!result.written) continue;
    for (const auto& [role, data] : impl_->places) {
      expect(role == result.role || data != impl_->at(result.role) || in_place(role, result.role),
             "[gpu graph] {}: tensor {} lies where a result does", impl_->spec.text(),
             static_cast<int>(role));
    }
  }
  host_gpu::fill_with_nan(workspace, workspace_bytes());
}

void GpuGraph::run() const {
  host_gpu::put(impl_->stream, impl_->spec.text(), [graph = *impl_] { graph.run(); });
}

void build_graphs(const Context&, const std::vector<GraphSpec>& graphs,
                  const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto all = std::ssize(graphs);
  if (progress) progress(all, all);
}

void set_plans(const Context& context, const GpuPlans& plans) {
  context.cudnn() = std::make_shared<CudnnHandle>(CudnnHandle{plans});
}
const GpuPlans& plans_of(const Context& context) {
  if (context.cudnn() == nullptr) set_plans(context, {});
  return context.cudnn()->plans;
}

std::string plan_environment(const Context& context) { return context.cuda().name(); }

GpuPlans::Timing time_engines(const Context&, const GraphSpec& spec, int) {
  return {.graph = spec.text(), .engines = {{.name = "loops"}}, .taken = 0};
}

}  // namespace rk
