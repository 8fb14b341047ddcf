#include "tools/bench/tuning/fusions.h"

#include "engine/base/error.h"
#include "engine/tape/program.h"
#include "layers/gpu/batchnorm.h"
#include "layers/gpu/gradient_sums.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rk {
namespace {

using enum GraphRole;

double bytes_of(const Graph& graph, GraphRole role) {
  const Graph::Tensor& tensor = graph.tensor(role);
  return static_cast<double>(tensor.elements()) * static_cast<double>(size_of(tensor.type));
}

Graph::Value normalised_input(const Graph& plain, Graph& into) {
  const auto x = into.read(kX, plain);
  const Shape channels = {into.tensor(x).shape[3]};
  const auto scale = into.read(kScale, channels), bias = into.read(kBias, channels);
  return into.relu(into.bias(into.scale(x, scale), bias));
}

Graph with_output_sums(const Graph& plain, bool normalises_input) {
  Graph g(plain.precision());
  const auto x = normalises_input ? normalised_input(plain, g) : g.read(kX, plain);
  const auto y = g.conv(x, g.read(kW, plain), plain.operations()[0].window);
  g.write(y, kY, plain.tensor(kY).row_stride);
  const auto [sum, squares] = g.channel_sums(y);
  g.write(sum, kSum);
  g.write(squares, kSquares);
  return g;
}

Graph weight_gradient_of_normalized(const Graph& plain) {
  Graph g(plain.precision());
  const auto dy = g.read(kDy, plain);
  const auto x = normalised_input(plain, g);
  g.write(g.wgrad(dy, x, plain.operations()[0].window, plain.tensor(kDw).shape), kDw);
  return g;
}

// A convolution's graphs.
struct Passes {
  const Graph* forward = nullptr;
  const Graph* weight_gradient = nullptr;
  const Graph* input_gradient = nullptr;  // null: not wanted
};
Passes passes_of(const std::vector<Graph>& graphs) {
  Passes passes;
  for (const Graph& graph : graphs) {
    if (graph.has(Graph::Op::kConv)) passes.forward = &graph;
    if (graph.has(Graph::Op::kWgrad)) passes.weight_gradient = &graph;
    if (graph.has(Graph::Op::kDgrad)) passes.input_gradient = &graph;
  }
  return passes;
}

// Collects distinct fusions and counts them.
class Fusions {
 public:
  void add(Fusion fusion) {
    const auto same = std::ranges::find_if(all_, [&](const Fusion& other) {
      return other.kind == fusion.kind && other.parts == fusion.parts;
    });
    if (same == all_.end()) {
      all_.push_back(std::move(fusion));
    } else {
      ++same->count;
    }
  }
  std::vector<Fusion> take() && {
    std::ranges::stable_sort(all_, {}, &Fusion::kind);
    return std::move(all_);
  }

 private:
  std::vector<Fusion> all_;
};

}  // namespace

std::string_view name_of(FusionKind kind) {
  static constexpr std::array<std::string_view, kFusionKinds.size()> kNames = {
      "sums of the output", "normalised input", "sums of the gradient",
      "sums of a block's gradient"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Fusion> find_fusions(Program& program) {
  expect(program.options().precision == Precision::kFp16, "[fusions] expected fp16");
  program.lay_out();
  const auto& nodes = program.nodes();
  const auto input = [&](std::size_t node) { return program.tape().links[node].inputs[0].tensor; };
  std::map<TensorId, int> readers;
  std::set<const Node*> normalised;  // convolutions
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const NodeInput& read : program.tape().links[n].inputs) ++readers[read.tensor];
    if (dynamic_cast<const gpu::BatchNormNode*>(nodes[n].get()) != nullptr) {
      normalised.insert(program.producer(input(n)));
    }
  }
  Fusions found;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (dynamic_cast<const ConvolutionNode*>(nodes[n].get()) == nullptr) continue;
    std::vector<Graph> graphs;
    dynamic_cast<const RunsGraphs&>(*nodes[n]).graphs(program.uses(static_cast<int>(n)), graphs);
    const auto [forward, weight_gradient, input_gradient] = passes_of(graphs);
    const double x = bytes_of(*forward, kX), y = bytes_of(*forward, kY);
    const bool sums = normalised.contains(nodes[n].get());
    if (sums) {
      found.add({FusionKind::kOutputSums, {*forward}, {with_output_sums(*forward, false)}, y, 1});
    }
    const auto* in_front = dynamic_cast<const gpu::BatchNormNode*>(program.producer(input(n)));
    if (in_front == nullptr || !in_front->options().relu) continue;
    const bool residual = in_front->options().residual >= 0;
    if (sums && !residual && readers[input(n)] == 1) {
      // Applying the normalisation as a separate pass reads its input and writes its output.
      found.add(
          {FusionKind::kNormalizedInput,
           {*forward, *weight_gradient},
           {with_output_sums(*forward, true), weight_gradient_of_normalized(*weight_gradient)},
           y + 2 * x,
           1});
    }
    // The first reader is the last to add to the gradient: only there is the gradient complete.
    const bool completes = input_gradient != nullptr &&
                           (readers[input(n)] == 1 || input_gradient->has(Graph::Op::kAdd));
    if (!completes) continue;
    // Computing the sums as a separate pass reads the gradient and the normalisation's input; with
    // a residual it also writes the residual's gradient.
    found.add({residual ? FusionKind::kBlockGradientSums : FusionKind::kGradientSums,
               {*input_gradient},
               {gpu::graph_with_sums(*input_gradient, residual)},
               (residual ? 3 : 2) * x,
               1});
  }
  return std::move(found).take();
}

}  // namespace rk
