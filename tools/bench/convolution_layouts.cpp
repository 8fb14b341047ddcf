#include "tools/bench/convolution_layouts.h"

#include "engine/base/random.h"
#include "engine/device/buffer.h"
#include "engine/device/onednn.h"
#include "engine/system/signals.h"
#include "layers/conv2d.h"
#include "layers/onednn/image_desc.h"
#include "tools/cli/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace rk {
namespace {

using dnnl::memory;

// A layout as widths of the channels of x and y (engine/tape/layout.h); 0 lets the library choose.
struct Widths {
  std::int64_t x, y;
};
struct Layout {
  const char* name;
  Widths (*widths)(const ConvolutionGeometry& g);
};

// A first layer's few channels lie in planes when the others lie in blocks.
Widths blocks(const ConvolutionGeometry& g, std::int64_t width) {
  return {g.x[3] % width == 0 ? width : 1, g.y[3] % width == 0 ? width : 1};
}

constexpr std::array<Layout, 6> kLayouts = {{
    {"chosen",
     [](const ConvolutionGeometry& g) {
       return g.block > 0 ? Widths{g.block, g.block} : Widths{g.x_width, g.y_width};
     }},
    {"nhwc",
     [](const ConvolutionGeometry& g) {
       return Widths{g.x[3], g.y[3]};
     }},
    {"nchw",
     [](const ConvolutionGeometry&) {
       return Widths{1, 1};
     }},
    {"blocks of 8", [](const ConvolutionGeometry& g) { return blocks(g, 8); }},
    {"blocks of 16", [](const ConvolutionGeometry& g) { return blocks(g, 16); }},
    {"library's choice",
     [](const ConvolutionGeometry&) {
       return Widths{0, 0};
     }},
}};

memory::desc image(const Shape& s, std::int64_t width) {
  if (width > 0) return image_desc(s, width);
  return {{s[0], s[3], s[1], s[2]}, memory::data_type::f32, memory::format_tag::any};
}

// Memory for the arguments of one primitive at a time, filled once: what a convolution computes
// does not change how long it takes as long as the numbers are ordinary ones.
class Arguments {
 public:
  float* get(std::size_t slot, std::size_t bytes) {
    Buffer& buffer = buffers_[slot];
    if (buffer.bytes() < bytes) {
      buffer = Buffer(bytes);
      CounterRandom random(0, static_cast<std::uint32_t>(slot), 0);
      std::generate_n(buffer.as<float>(), bytes / sizeof(float),
                      [&] { return static_cast<float>(random.uniform()) - 0.5F; });
    }
    return buffer.as<float>();
  }

 private:
  std::array<Buffer, 4> buffers_;
};

// One pass of one convolution in one layout; empty where the library has only its reference code.
class Pass {
 public:
  enum class Kind { kForward, kInputGradient, kWeightGradient };

  Pass(const Context& context, const ConvolutionGeometry& g, Widths widths, Kind kind) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::engine& engine = context.onednn().engine;
    const auto direct = dnnl::algorithm::convolution_direct;
    const memory::desc x = image(g.x, widths.x), y = image(g.y, widths.y);
    const Shape& s = g.weight;
    const memory::desc w({s[0], s[1], s[2], s[3]}, memory::data_type::f32, memory::format_tag::any);
    const memory::dims stride(g.options.stride.begin(), g.options.stride.end());
    const memory::dims padding(g.options.padding.begin(), g.options.padding.end());
    try {
      const dnnl::convolution_forward::primitive_desc forward(
          {dnnl::prop_kind::forward_training, direct, x, w, y, stride, padding, padding},
          attributes, engine);
      switch (kind) {
        case Kind::kForward:
          take(forward, dnnl::convolution_forward(forward),
               {{DNNL_ARG_SRC, forward.src_desc()},
                {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                {DNNL_ARG_DST, forward.dst_desc()}});
          break;
        case Kind::kInputGradient: {
          const dnnl::convolution_backward_data::primitive_desc pd(
              {direct, x, w, y, stride, padding, padding}, attributes, engine, forward);
          take(pd, dnnl::convolution_backward_data(pd),
               {{DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
                {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}});
          break;
        }
        case Kind::kWeightGradient: {
          const dnnl::convolution_backward_weights::primitive_desc pd(
              {direct, x, w, y, stride, padding, padding}, attributes, engine, forward);
          take(pd, dnnl::convolution_backward_weights(pd),
               {{DNNL_ARG_SRC, pd.src_desc()},
                {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()},
                {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}});
          break;
        }
      }
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }

  bool offered() const { return primitive_.has_value(); }

  double run(const Context& context, Arguments& memory) {
    std::vector<BoundPrimitive::Argument> arguments;
    for (std::size_t i = 0; i < descs_.size(); ++i) {
      arguments.push_back(
          {descs_[i].first, descs_[i].second, memory.get(i, descs_[i].second.get_size())});
    }
    const BoundPrimitive bound(context.onednn(), *primitive_, arguments);
    return milliseconds([&] { bound.run(); });
  }

 private:
  using Descs = std::vector<std::pair<int, memory::desc>>;

  template <class Description>
  void take(const Description& pd, dnnl::primitive primitive, Descs descs) {
    if (std::string_view(pd.impl_info_str()).starts_with("ref")) return;
    primitive_ = std::move(primitive);
    descs_ = std::move(descs);
    descs_.emplace_back(DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc());
  }

  std::optional<dnnl::primitive> primitive_;
  Descs descs_;
};

struct Convolution {
  ConvolutionGeometry geometry;
  bool input_gradient = false;
  int count = 0;
};

bool same(const ConvolutionGeometry& a, const ConvolutionGeometry& b) {
  return a.x == b.x && a.y == b.y && a.x_width == b.x_width && a.y_width == b.y_width &&
         a.options.kernel == b.options.kernel && a.options.stride == b.options.stride &&
         a.options.padding == b.options.padding;
}

std::string describe(const ConvolutionGeometry& g) {
  return fmt::format("{}x{} -> {}, {}x{}, stride {}", g.x[1], g.x[3], g.y[3], g.options.kernel[0],
                     g.options.kernel[1], g.options.stride[0]);
}

std::vector<Convolution> convolutions_of(const Program& program) {
  std::vector<Convolution> all;
  for (std::size_t i = 0; i < program.nodes().size(); ++i) {
    const auto* node = dynamic_cast<const ConvolutionNode*>(program.nodes()[i].get());
    if (node == nullptr) continue;
    const ConvolutionGeometry& g = node->geometry();
    const bool gradient =
        program.wants_gradient(program.inputs_of(static_cast<int>(i)).front().tensor);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Convolution& c) {
      return c.input_gradient == gradient && same(c.geometry, g);
    });
    if (found == all.end()) {
      all.push_back({g, gradient, 1});
    } else {
      ++found->count;
    }
  }
  return all;
}

}  // namespace

LayoutComparison compare_layouts(const Context& context, const Program& program, int repeats) {
  const auto rounds = static_cast<std::size_t>(repeats);
  LayoutComparison comparison;
  for (const Layout& layout : kLayouts) comparison.layouts.push_back({.layout = layout.name});

  Arguments memory;
  for (const Convolution& convolution : convolutions_of(program)) {
    std::vector<Pass::Kind> kinds = {Pass::Kind::kForward, Pass::Kind::kWeightGradient};
    if (convolution.input_gradient) kinds.push_back(Pass::Kind::kInputGradient);
    std::vector<double> sums(kLayouts.size(), 0.0);  // medians of the passes
    for (const Pass::Kind kind : kinds) {
      std::vector<Pass> passes;
      for (const Layout& layout : kLayouts) {
        passes.emplace_back(context, convolution.geometry, layout.widths(convolution.geometry),
                            kind);
      }
      std::vector<std::vector<double>> times(kLayouts.size());
      for (std::size_t r = 0; r < rounds + 1; ++r) {
        stop_if_interrupted();
        for (std::size_t l = 0; l < passes.size(); ++l) {
          if (!passes[l].offered()) continue;
          const double ms = passes[l].run(context, memory) * convolution.count;
          if (r == 0) continue;  // the first run faults memory in
          times[l].push_back(ms);
        }
      }
      for (std::size_t l = 0; l < passes.size(); ++l) {
        if (passes[l].offered()) {
          const double median = summarize(times[l]).median;
          sums[l] += median;
          comparison.layouts[l].total += median;
        } else {
          sums[l] = std::numeric_limits<double>::infinity();
          comparison.layouts[l].complete = false;
        }
      }
    }
    comparison.least += *std::min_element(sums.begin(), sums.end());
    comparison.convolutions.push_back(
        {describe(convolution.geometry), convolution.count, std::move(sums)});
  }
  return comparison;
}

}  // namespace rk
