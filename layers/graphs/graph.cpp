#include "layers/graphs/graph.h"

#include "engine/base/error.h"
#include "layers/conv2d.h"

#include <algorithm>
#include <array>
#include <set>

namespace rk {
namespace {

// Which fusions are taken, by precision, and the part that remains of a graph where they are not.
// Max pooling is ours everywhere: the library's frontend has no gradient of it.
struct Fusion {
  GraphKind whole;
  bool fp32, tf32, fp16, bf16;
  GraphKind part;

  bool in(Precision precision) const {
    switch (precision) {
      case Precision::kFp32: return fp32;
      case Precision::kTf32: return tf32;
      case Precision::kFp16: return fp16;
      case Precision::kBf16: return bf16;
    }
    return false;
  }
};

// In fp32 sums are refused, and what hangs on an input's gradient is taken by one engine alone, of
// the heuristics' list of last resort, which compiles its kernels. In 16 bits that is so where the
// convolution has a stride: there the part with our own kernel behind it is the faster (on an H100,
// 3x3/2 of 256x56x56x128: 0.40 ms in one, 0.17 without the mask).
using Kind = GraphKind;
// clang-format off
constexpr std::array kFusions = {
    //     whole                         fp32  tf32  fp16  bf16  part
    Fusion{Kind::kConvolutionSums,        false, true, true, true, Kind::kConvolution},
    Fusion{Kind::kConvolutionBias,        true,  true, true, true, Kind::kConvolution},
    Fusion{Kind::kConvolutionBiasRelu,    true,  true, true, true, Kind::kConvolution},
    Fusion{Kind::kConvolutionBiasAddRelu, true,  true, true, true, Kind::kConvolution},
    Fusion{Kind::kInputGradientAdd,       false, true, true, true, Kind::kInputGradient},
    Fusion{Kind::kInputGradientRelu,      false, true, true, true, Kind::kInputGradient},
    Fusion{Kind::kInputGradientAddRelu,   false, true, true, true, Kind::kInputGradient},
};
// clang-format on

// A convolution with its batch normalisation, and who else touches its input.
struct Unit {
  ConvolutionGeometry convolution;
  bool relu = false, residual = false;
  bool wants_input_gradient = false;
  bool first_writer = false;  // of the input's gradient, in the order of backward
  bool last_writer = false;
  bool input_relu = false;  // a unit with ReLU made the input
};

std::vector<Unit> units_of(const Program& program) {
  const auto& nodes = program.nodes();
  const auto convolution = [&](std::size_t node) {
    return dynamic_cast<const ConvolutionNode*>(nodes[node].get());
  };
  std::vector<Unit> units;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (convolution(i) == nullptr) continue;
    const std::vector<NodeInput> inputs = program.inputs_of(static_cast<int>(i));
    const TensorId x = inputs[0].tensor;
    Unit unit{.convolution = convolution(i)->geometry(),
              .relu = program.output_read_in_backward(static_cast<int>(i)),
              .residual = inputs.size() > 1,
              .wants_input_gradient = program.wants_gradient(x),
              .first_writer = true,
              .last_writer = true};
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      const int node = static_cast<int>(j);
      if (program.output_of(node) == x) {
        unit.input_relu = convolution(j) != nullptr && program.output_read_in_backward(node);
      }
      for (const NodeInput& input : program.inputs_of(node)) {
        if (input.tensor != x || j == i) continue;
        // Backward runs from the last node to the first.
        (j > i ? unit.first_writer : unit.last_writer) = false;
      }
    }
    units.push_back(unit);
  }
  return units;
}

GraphKind forward_kind(const Unit& unit) {
  if (unit.residual) return GraphKind::kConvolutionBiasAddRelu;
  return unit.relu ? GraphKind::kConvolutionBiasRelu : GraphKind::kConvolutionBias;
}

// mask: the ReLU in front belongs to this gradient. With the batch's statistics it belongs to that
// of the normalisation.
GraphKind input_gradient_kind(const Unit& unit, bool mask) {
  mask = mask && unit.input_relu && unit.last_writer;
  if (unit.first_writer) return mask ? GraphKind::kInputGradientRelu : GraphKind::kInputGradient;
  return mask ? GraphKind::kInputGradientAddRelu : GraphKind::kInputGradientAdd;
}

GraphTensor tensor_of(const GraphSpec& spec, GraphRole role, bool written) {
  const DType type = image_type(spec.precision);
  const std::int64_t outputs = spec.n * spec.out_h() * spec.out_w() * spec.out_channels;
  // A normalisation's input has its output's shape.
  const std::int64_t inputs = spec.c == 0 ? outputs : spec.n * spec.h * spec.w * spec.c;
  switch (role) {
    case GraphRole::kX:
    case GraphRole::kOthers:
    case GraphRole::kDx: return {role, inputs, type, written};
    case GraphRole::kResidual:
    case GraphRole::kY:
    case GraphRole::kDy:
    case GraphRole::kMaskedDy: return {role, outputs, type, written};
    case GraphRole::kW:
    case GraphRole::kDw: return {role, spec.out_channels * spec.taps() * spec.c, type, written};
    case GraphRole::kBias: return {role, spec.out_channels, type, written};
    case GraphRole::kSigns: return {role, (outputs + 7) / 8, DType::kUint8, written};
    default: return {role, spec.out_channels, DType::kFloat32, written};
  }
}

}  // namespace

std::string_view name_of(GraphKind kind) {
  switch (kind) {
    case GraphKind::kConvolution: return "conv";
    case GraphKind::kConvolutionSums: return "conv+sums";
    case GraphKind::kConvolutionBias: return "conv+bias";
    case GraphKind::kConvolutionBiasRelu: return "conv+bias+relu";
    case GraphKind::kConvolutionBiasAddRelu: return "conv+bias+add+relu";
    case GraphKind::kInputGradient: return "dgrad";
    case GraphKind::kInputGradientAdd: return "dgrad+add";
    case GraphKind::kInputGradientRelu: return "dgrad+drelu";
    case GraphKind::kInputGradientAddRelu: return "dgrad+add+drelu";
    case GraphKind::kWeightGradient: return "wgrad";
    case GraphKind::kBatchNorm: return "bn";
    case GraphKind::kBatchNormRelu: return "bn+relu";
    case GraphKind::kBatchNormAddRelu: return "bn+add+relu";
    case GraphKind::kBatchNormGradient: return "bn gradient";
    case GraphKind::kBatchNormReluGradient: return "drelu+bn gradient";
    case GraphKind::kBatchNormAddReluGradient: return "drelu+dadd+bn gradient";
  }
  return "";
}

std::string GraphSpec::text() const {
  if (c == 0) {
    return fmt::format("{} {} {}x{}x{}x{}", name_of(precision), name_of(kind), n, h, w,
                       out_channels);
  }
  std::string text =
      fmt::format("{} {} {}x{}x{}x{} -> {}, {}x{}/{}", name_of(precision), name_of(kind), n, h, w,
                  c, out_channels, kernel[0], kernel[1], stride[0]);
  if (stride[0] != stride[1]) text += fmt::format("x{}", stride[1]);
  if (padding[0] != kernel[0] / 2 || padding[1] != kernel[1] / 2) {
    text += fmt::format(", padding {}x{}", padding[0], padding[1]);
  }
  return text;
}

std::vector<GraphTensor> tensors_of(const GraphSpec& spec) {
  std::vector<GraphTensor> tensors;
  const auto reads = [&](std::initializer_list<GraphRole> roles) {
    for (const GraphRole role : roles) tensors.push_back(tensor_of(spec, role, false));
  };
  const auto writes = [&](std::initializer_list<GraphRole> roles) {
    for (const GraphRole role : roles) tensors.push_back(tensor_of(spec, role, true));
  };
  using enum GraphRole;
  switch (spec.kind) {
    case GraphKind::kConvolutionSums: writes({kSum, kSquares}); [[fallthrough]];
    case GraphKind::kConvolution:
      reads({kX, kW});
      writes({kY});
      break;
    case GraphKind::kConvolutionBiasAddRelu: reads({kResidual}); [[fallthrough]];
    case GraphKind::kConvolutionBias:
    case GraphKind::kConvolutionBiasRelu:
      reads({kX, kW, kBias});
      writes({kY});
      break;
    case GraphKind::kInputGradientAddRelu: reads({kX}); [[fallthrough]];
    case GraphKind::kInputGradientAdd: reads({kOthers}); [[fallthrough]];
    case GraphKind::kInputGradient:
      reads({kDy, kW});
      writes({kDx});
      break;
    case GraphKind::kInputGradientRelu:
      reads({kDy, kW, kX});
      writes({kDx});
      break;
    case GraphKind::kWeightGradient:
      reads({kDy, kX});
      writes({kDw});
      break;
    case GraphKind::kBatchNormAddRelu:
      reads({kResidual});
      writes({kSigns});
      [[fallthrough]];
    case GraphKind::kBatchNorm:
    case GraphKind::kBatchNormRelu:
      reads({kX, kGamma, kBeta, kRunningMean, kRunningVariance});
      writes({kY, kMean, kInvStd, kNextMean, kNextVariance});
      break;
    case GraphKind::kBatchNormReluGradient: reads({kBeta}); [[fallthrough]];
    case GraphKind::kBatchNormGradient:
      reads({kDy, kX, kGamma, kMean, kInvStd});
      writes({kDx, kDGamma, kDBeta});
      break;
    case GraphKind::kBatchNormAddReluGradient:
      reads({kDy, kX, kGamma, kMean, kInvStd, kSigns});
      writes({kDx, kMaskedDy, kDGamma, kDBeta});
      break;
  }
  return tensors;
}

GraphKind part_of(GraphKind kind) {
  const auto fusion = std::ranges::find(kFusions, kind, &Fusion::whole);
  return fusion == kFusions.end() ? kind : fusion->part;
}

GraphKind taken(const GraphSpec& wanted) {
  const bool strided = wanted.stride[0] != 1 || wanted.stride[1] != 1;
  for (const Fusion& fusion : kFusions) {
    if (fusion.whole != wanted.kind) continue;
    const bool slow = strided && fusion.part == Kind::kInputGradient;
    return fusion.in(wanted.precision) && !slow ? wanted.kind : fusion.part;
  }
  return wanted.kind;
}

bool normalises_by_graph(Precision precision) { return precision != Precision::kFp32; }

BatchNormGraphs batchnorm_graphs(const Shape& shape, Precision precision, bool relu,
                                 bool residual) {
  GraphSpec forward{.kind = GraphKind::kBatchNorm,
                    .precision = precision,
                    .n = shape[0],
                    .h = shape[1],
                    .w = shape[2],
                    .out_channels = shape[3]};
  GraphSpec backward = forward;
  backward.kind = GraphKind::kBatchNormGradient;
  if (relu) {
    forward.kind = residual ? GraphKind::kBatchNormAddRelu : GraphKind::kBatchNormRelu;
    backward.kind =
        residual ? GraphKind::kBatchNormAddReluGradient : GraphKind::kBatchNormReluGradient;
  }
  return {forward, backward};
}

std::int64_t image_channels(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return 3;
    case Precision::kTf32:
    case Precision::kFp16: return 4;
    case Precision::kBf16: return 8;
  }
  return 3;
}

GraphSpec graph_spec(const ConvolutionGeometry& geometry, Precision precision, GraphKind kind) {
  return {.kind = kind,
          .precision = precision,
          .n = geometry.x[0],
          .c = geometry.x[3] == 3 ? image_channels(precision) : geometry.x[3],
          .h = geometry.x[1],
          .w = geometry.x[2],
          .out_channels = geometry.y[3],
          .kernel = geometry.options.kernel,
          .stride = geometry.options.stride,
          .padding = geometry.options.padding};
}

std::vector<BatchNormUnit> batchnorm_units(const Program& program, Precision precision) {
  std::vector<BatchNormUnit> units;
  for (const Unit& unit : units_of(program)) {
    const ConvolutionGeometry& g = unit.convolution;
    BatchNormUnit next{.convolution = g,
                       .relu = unit.relu,
                       .residual = unit.residual,
                       .input_gradient = unit.wants_input_gradient,
                       .count = 1,
                       .sums = graph_spec(g, precision, GraphKind::kConvolutionSums),
                       .graphs = batchnorm_graphs(g.y, precision, unit.relu, unit.residual)};
    const auto same = std::ranges::find_if(units, [&](const BatchNormUnit& other) {
      return other.sums == next.sums && other.graphs.forward == next.graphs.forward &&
             other.input_gradient == next.input_gradient;
    });
    if (same == units.end()) {
      units.push_back(next);
    } else {
      ++same->count;
    }
  }
  return units;
}

std::vector<GraphSpec> graphs_of(const Program& program, BatchNormMode mode, Precision precision) {
  std::set<GraphSpec> graphs;
  for (const Unit& unit : units_of(program)) {
    const ConvolutionGeometry& g = unit.convolution;
    const GraphSpec convolution = graph_spec(g, precision, GraphKind::kConvolution);
    const auto want = [&](GraphSpec spec, GraphKind kind) {
      spec.kind = kind;
      spec.kind = taken(spec);
      graphs.insert(spec);
    };
    const bool training = program.options().gradients;
    const bool batch_statistics = training && mode == BatchNormMode::kBatch;
    if (batch_statistics) {
      // All ways: sums beside the convolution, or the normalisation as a graph of its own or ours.
      want(convolution, GraphKind::kConvolution);
      want(convolution, GraphKind::kConvolutionSums);
      if (normalises_by_graph(precision)) {
        const auto normalisation = batchnorm_graphs(g.y, precision, unit.relu, unit.residual);
        graphs.insert({normalisation.forward, normalisation.backward});
      }
    } else {
      want(convolution, forward_kind(unit));
    }
    if (!training) continue;
    want(convolution, GraphKind::kWeightGradient);
    if (unit.wants_input_gradient) {
      want(convolution, input_gradient_kind(unit, !batch_statistics));
    }
  }
  return {graphs.begin(), graphs.end()};
}

}  // namespace rk
