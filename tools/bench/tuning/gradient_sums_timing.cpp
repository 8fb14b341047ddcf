#include "tools/bench/tuning/gradient_sums_timing.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "kernels/blocks/folded_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/graphs/graph_runner.h"
#include "layers/graphs/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <vector>

namespace rk {
namespace {

using enum GraphRole;

// Both ways, on tensors of their own.
class Ways {
 public:
  Ways(const Context& context, const Graph& plain, const Graph& with_sums)
      : context_(context), with_sums_(context, with_sums), plain_(context, plain) {
    for (const Graph::Tensor& tensor : plain.tensors()) {
      if (tensor.role == kNone) continue;
      Memory memory = context.allocate(tensor.bytes());
      gpu::fill_with_noise(context, memory.data(),
                           static_cast<std::int64_t>(tensor.bytes() / size_of(tensor.type)),
                           tensor.type, static_cast<std::uint32_t>(tensor.role));
      if (tensor.role == kDx) {
        tiles_ = {tensor.elements() / tensor.shape[3], static_cast<int>(tensor.shape[3])};
      }
      bytes_ += memory.bytes();
      memory_.emplace(tensor.role, std::move(memory));
    }
    unit_ = gpu::UnitNormalisation(context, tiles_.channels);
    sums_ = context.allocate<float>(tiles_.channels);
    partial_ = context.allocate<double>(tiles_.partials(1));
    workspace_ = context.allocate(std::max(with_sums_.workspace_bytes(), plain_.workspace_bytes()));
    std::vector<GraphRunner::Place> places = unit_.places(sums_.as<float>());
    for (const auto& [role, memory] : memory_) places.push_back({role, memory.data()});
    for (GraphRunner* each : {&with_sums_, &plain_}) each->bind(places, workspace_.data());
  }

  std::size_t bytes() const { return bytes_; }

  void by_graph() const { with_sums_.run(); }
  void by_kernel() const {
    plain_.run();
    add_up();
  }

  GradientSumsTiming compare(Precision precision) {
    const Memory& dx = memory_.at(kDx);
    const Memory kept = context_.allocate(dx.bytes());
    const auto off = [&] {
      return gpu::relative_error(context_, dx.data(), kept.data(), tiles_.rows * tiles_.channels,
                                 image_type(precision));
    };
    plain_.run();
    context_.copy(kept.data(), dx.data(), dx.bytes());
    spoil_sums();
    by_graph();
    GradientSumsTiming timing;
    const double gradient_error = off(), of_sums = sums_error();
    timing.error = gradient_error > of_sums ? gradient_error : of_sums;  // NaN stays
    const std::vector<float> sums = this->sums();
    context_.copy(kept.data(), dx.data(), dx.bytes());
    by_graph();
    const bool same_bits = off() == 0 && this->sums() == sums;
    timing.agrees = same_bits && timing.error <= agreement(precision);
    return timing;
  }

 private:
  void add_up() const {
    launch(MaskedSums<Float16>{.rows = tiles_.rows,
                               .channels = tiles_.channels,
                               .row_stride = tiles_.channels,
                               .dy = memory_.at(kDx).as<Float16>(),
                               .partial = partial_.as<double>()},
           context_.stream());
  }
  void spoil_sums() {
    const std::vector<float> nan(static_cast<std::size_t>(tiles_.channels),
                                 std::numeric_limits<float>::quiet_NaN());
    sums_.upload(nan.data(), sums_.bytes());
  }
  std::vector<float> sums() const {
    std::vector<float> values(static_cast<std::size_t>(tiles_.channels));
    context_.synchronize();
    sums_.download(values.data(), sums_.bytes());
    return values;
  }
  // Error of the graph's sums, relative to our kernel's sums over the same gradient.
  double sums_error() const {
    add_up();
    const std::vector<float> got = sums();
    std::vector<double> partial(static_cast<std::size_t>(tiles_.partials(1)));
    partial_.download(partial.data(), partial_.bytes());
    double largest = 0, apart = 0;
    for (int c = 0; c < tiles_.channels; ++c) {
      double sum = 0;
      for (int tile = 0; tile < tiles_.row_tiles(); ++tile) {
        sum += partial[at(tiles_.partial(tile, 1, 0, c))];
      }
      largest = std::max(largest, std::abs(sum));
      const double here = std::abs(static_cast<double>(got[at(c)]) - sum);
      if (here > apart || std::isnan(here)) apart = here;  // NaN stays
    }
    return apart / largest;
  }

  const Context& context_;
  GraphRunner with_sums_, plain_;
  std::map<GraphRole, Memory> memory_;
  ChannelTiles tiles_;
  gpu::UnitNormalisation unit_;
  Memory sums_, partial_, workspace_;
  std::size_t bytes_ = 0;
};

}  // namespace

GradientSumsTiming time_gradient_sums(const Context& context, const Graph& graph, int repeats) {
  expect(graph.precision() == Precision::kFp16 && gpu::is_masked_gradient(graph),
         "[gradient sums] expected a masked gradient in fp16, got {}", graph.text());
  const Graph with_sums = gpu::graph_with_sums(graph);
  std::vector<std::unique_ptr<Ways>> sets;
  do {
    sets.push_back(std::make_unique<Ways>(context, graph, with_sums));
  } while (sets.size() < gpu::kTrialLaunches &&
           sets.size() * sets[0]->bytes() < gpu::kBeyondCaches);
  GradientSumsTiming timing = sets[0]->compare(graph.precision());
  const auto captured = [&](void (Ways::*way)() const) {
    return std::make_unique<CudaGraph>(context.cuda(), [&] {
      for (std::size_t i = 0; i < gpu::kTrialLaunches; ++i) (*sets[i % sets.size()].*way)();
    });
  };
  std::vector<std::unique_ptr<CudaGraph>> replays;
  replays.push_back(captured(&Ways::by_graph));
  replays.push_back(captured(&Ways::by_kernel));
  const std::vector<double> times = gpu::time_replays(context, replays, repeats);
  timing.graph_ms = times[0] / static_cast<double>(gpu::kTrialLaunches);
  timing.kernel_ms = times[1] / static_cast<double>(gpu::kTrialLaunches);
  return timing;
}

}  // namespace rk
