// In place of layers/gpu_graph_cudnn.cpp: the graphs of convolutions as plain loops, added up in
// double and rounded once. Stricter than cuDNN in what it is given: every tensor of the kind and no
// other, all in device memory, none where the result goes.
#include "engine/cuda_context.h"
#include "engine/error.h"
#include "kernels/half_element.h"
#include "layers/gpu_graph_run.h"
#include "tests/host_gpu/gpu_graph_log.h"
#include "tests/host_gpu/memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace rk {
namespace {

float read(Precision precision, const void* data, std::int64_t i) {
  switch (image_type(precision)) {
    case DType::kFloat16: return __half2float(static_cast<const __half*>(data)[i]);
    case DType::kBfloat16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    default: return static_cast<const float*>(data)[i];
  }
}

void write(Precision precision, void* data, std::int64_t i, double value) {
  const auto rounded = static_cast<float>(value);
  switch (image_type(precision)) {
    case DType::kFloat16: static_cast<__half*>(data)[i] = __float2half_rn(rounded); return;
    case DType::kBfloat16:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(rounded);
      return;
    default: static_cast<float*>(data)[i] = rounded;
  }
}

bool needs(GraphKind kind, GraphRole role) {
  const bool forward = kind <= GraphKind::kConvolutionBiasAddRelu;
  const bool weight = kind == GraphKind::kWeightGradient;
  const bool adds =
      kind == GraphKind::kInputGradientAdd || kind == GraphKind::kInputGradientAddRelu;
  const bool masks =
      kind == GraphKind::kInputGradientRelu || kind == GraphKind::kInputGradientAddRelu;
  switch (role) {
    case GraphRole::kX: return forward || weight || masks;
    case GraphRole::kW: return !weight;
    case GraphRole::kBias: return forward && kind >= GraphKind::kConvolutionBias;
    case GraphRole::kResidual: return kind == GraphKind::kConvolutionBiasAddRelu;
    case GraphRole::kY: return forward;
    case GraphRole::kDy: return !forward;
    case GraphRole::kDw: return weight;
    case GraphRole::kDx: return !forward && !weight;
    case GraphRole::kOthers: return adds;
    default: return false;
  }
}

std::vector<GraphSpec>& log() {
  static std::vector<GraphSpec> built;
  return built;
}

// f(output pixel, input pixel, tap) for every pair of pixels that a tap joins.
template <class F> void for_each_tap(const GraphSpec& s, F&& f) {
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t oh = 0; oh < s.out_h(); ++oh) {
      for (std::int64_t ow = 0; ow < s.out_w(); ++ow) {
        for (std::int64_t kh = 0; kh < s.kernel; ++kh) {
          for (std::int64_t kw = 0; kw < s.kernel; ++kw) {
            const std::int64_t h = oh * s.stride + kh - s.padding;
            const std::int64_t w = ow * s.stride + kw - s.padding;
            if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
            f((n * s.out_h() + oh) * s.out_w() + ow, (n * s.h + h) * s.w + w, kh * s.kernel + kw);
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
}  // namespace host_gpu

struct GpuGraph::Impl {
  GraphSpec spec;
  std::map<GraphRole, void*> places;
  std::string engine = "loops";

  void* at(GraphRole role) const { return places.at(role); }

  void forward() const {
    const std::int64_t pixels = spec.n * spec.out_h() * spec.out_w(), outputs = spec.out_channels;
    const auto x = widened(spec.precision, at(GraphRole::kX), spec.n * spec.h * spec.w * spec.c);
    const auto w =
        widened(spec.precision, at(GraphRole::kW), outputs * spec.kernel * spec.kernel * spec.c);
    std::vector<double> y(static_cast<std::size_t>(pixels * outputs), 0.0);
    for_each_tap(spec, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const float* row = w.data() + (o * spec.kernel * spec.kernel + tap) * spec.c;
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
      if (needs(spec.kind, GraphRole::kBias)) {
        value += static_cast<double>(read(spec.precision, at(GraphRole::kBias), i % outputs));
      }
      if (needs(spec.kind, GraphRole::kResidual)) {
        value += static_cast<double>(read(spec.precision, at(GraphRole::kResidual), i));
      }
      const bool relu = spec.kind == GraphKind::kConvolutionBiasRelu ||
                        spec.kind == GraphKind::kConvolutionBiasAddRelu;
      if (relu && !(value > 0)) value = 0;
      write(spec.precision, at(GraphRole::kY), i, value);
    }
  }

  void weight_gradient() const {
    const std::int64_t pixels = spec.n * spec.out_h() * spec.out_w(), outputs = spec.out_channels;
    const auto x = widened(spec.precision, at(GraphRole::kX), spec.n * spec.h * spec.w * spec.c);
    const auto dy = widened(spec.precision, at(GraphRole::kDy), pixels * outputs);
    std::vector<double> dw(static_cast<std::size_t>(outputs * spec.kernel * spec.kernel * spec.c),
                           0.0);
    for_each_tap(spec, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const auto g = static_cast<double>(dy[static_cast<std::size_t>(out * outputs + o)]);
        if (g == 0) continue;
        double* row = dw.data() + (o * spec.kernel * spec.kernel + tap) * spec.c;
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
    const auto w =
        widened(spec.precision, at(GraphRole::kW), outputs * spec.kernel * spec.kernel * spec.c);
    const auto dy = widened(spec.precision, at(GraphRole::kDy), pixels * outputs);
    // As an engine that works in several passes: the result's place is written first.
    std::vector<double> dx(static_cast<std::size_t>(elements), 0.0);
    for (std::int64_t i = 0; i < elements; ++i) write(spec.precision, at(GraphRole::kDx), i, 0.0);
    for_each_tap(spec, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const auto g = static_cast<double>(dy[static_cast<std::size_t>(out * outputs + o)]);
        if (g == 0) continue;
        const float* row = w.data() + (o * spec.kernel * spec.kernel + tap) * spec.c;
        double* pixel = dx.data() + in * spec.c;
        for (std::int64_t c = 0; c < spec.c; ++c) pixel[c] += g * static_cast<double>(row[c]);
      }
    });
    for (std::int64_t i = 0; i < elements; ++i) {
      double value = dx[static_cast<std::size_t>(i)];
      if (needs(spec.kind, GraphRole::kOthers)) {
        value += static_cast<double>(read(spec.precision, at(GraphRole::kOthers), i));
      }
      if (needs(spec.kind, GraphRole::kX) && !(read(spec.precision, at(GraphRole::kX), i) > 0)) {
        value = 0;
      }
      write(spec.precision, at(GraphRole::kDx), i, value);
    }
  }
};

GpuGraph::GpuGraph() = default;
GpuGraph::GpuGraph(const Context& context, const GraphSpec& spec)
    : impl_(std::make_unique<Impl>()) {
  expect(context.on_gpu(), "[gpu graph] expected a GPU");
  impl_->spec = spec;
  log().push_back(spec);
}
GpuGraph::~GpuGraph() = default;
GpuGraph::GpuGraph(GpuGraph&&) noexcept = default;
GpuGraph& GpuGraph::operator=(GpuGraph&&) noexcept = default;

std::size_t GpuGraph::workspace_bytes() const { return 64; }
const std::string& GpuGraph::engine() const { return impl_->engine; }

void GpuGraph::bind(std::initializer_list<Place> places, void* workspace) {
  impl_->places.clear();
  for (const Place& place : places) {
    host_gpu::expect_kind(host_gpu::Kind::kDevice, place.data, 1, "a graph's tensor");
    expect(needs(impl_->spec.kind, place.role), "[gpu graph] {} has no tensor {}",
           impl_->spec.text(), static_cast<int>(place.role));
    impl_->places[place.role] = const_cast<void*>(place.data);
  }
  for (int r = 1; r <= static_cast<int>(GraphRole::kDw); ++r) {
    const auto role = static_cast<GraphRole>(r);
    expect(!needs(impl_->spec.kind, role) || impl_->places.contains(role),
           "[gpu graph] {} lacks tensor {}", impl_->spec.text(), r);
  }
  // cuDNN allows no input to lie where the output does.
  for (const GraphRole result : {GraphRole::kY, GraphRole::kDx, GraphRole::kDw}) {
    if (!impl_->places.contains(result)) continue;
    for (const auto& [role, data] : impl_->places) {
      expect(role == result || data != impl_->at(result),
             "[gpu graph] {}: tensor {} lies where the result does", impl_->spec.text(),
             static_cast<int>(role));
    }
  }
  host_gpu::fill_with_nan(workspace, workspace_bytes());
}

void GpuGraph::run() const {
  switch (impl_->spec.kind) {
    case GraphKind::kWeightGradient: return impl_->weight_gradient();
    case GraphKind::kInputGradient:
    case GraphKind::kInputGradientAdd:
    case GraphKind::kInputGradientRelu:
    case GraphKind::kInputGradientAddRelu: return impl_->input_gradient();
    default: return impl_->forward();
  }
}

void set_plans(const Context&, const GpuPlans&) {}

std::string plan_environment(const Context& context) { return context.cuda().name(); }

GpuPlans::Timing time_engines(const Context&, const GraphSpec& spec, int) {
  return {.graph = spec.text(), .engines = {{.name = "loops"}}, .taken = 0};
}

}  // namespace rk
