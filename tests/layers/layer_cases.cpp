#include "tests/layers/layer_cases.h"
#include "engine/base/integers.h"

#include "engine/base/random.h"
#include "engine/tape/layout.h"
#include "engine/tape/reorder.h"
#include "layers/batchnorm.h"
#include "layers/concat.h"
#include "layers/conv_bn.h"
#include "layers/elementwise.h"
#include "layers/l2norm.h"
#include "layers/linear.h"
#include "layers/onednn/convolution_block.h"
#include "layers/pool.h"

#include <numeric>
#include <utility>

namespace rk {
namespace {

using Sources = std::vector<NodeHarness::Source>;
using Ids = std::vector<TensorId>;

// The size of the channel blocks that this processor's convolutions want, or 16.
std::int64_t block() { return convolution_block() > 0 ? convolution_block() : 16; }

// Distinct values 0.1 apart in random order: the differences' step makes no other value the
// maximum.
std::vector<float> distinct(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.1F * (static_cast<float>(i) - 0.5F * static_cast<float>(count));
  }
  CounterRandom random(seed, 1, 0);
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[at(random.below(static_cast<std::int64_t>(i)))]);
  }
  return values;
}

LayerCase convolution(const std::string& name, const NodeHarness::Source& x,
                      const Conv2dOptions& options) {
  LayerCase c;
  c.name = "conv2d_" + name;
  c.sources = {x};
  c.record = [options](Program& p, const Ids& ids) { return conv2d(p, ids[0], "conv", options); };
  c.step = 0.5;
  return c;
}

LayerCase normalisation(const std::string& name, const NodeHarness::Source& x, BatchNormMode mode,
                        bool relu, bool residual) {
  LayerCase c;
  c.name = std::string("batchnorm_") + (mode == BatchNormMode::kBatch ? "batch_" : "running_") +
           name + (residual ? "_residual" : "") + (relu ? "_relu" : "");
  c.sources = Sources(residual ? 2 : 1, x);
  const auto record = [mode, residual](bool with_relu) {
    return [=](Program& p, const Ids& ids) {
      return batchnorm(p, ids[0], "bn",
                       {.mode = mode, .relu = with_relu, .residual = residual ? ids[1] : -1});
    };
  };
  c.record = record(relu);
  if (relu) c.smooth = record(false);
  return c;
}

LayerCase folded(const std::string& name, const NodeHarness::Source& x,
                 const Conv2dOptions& options, const Shape& y, std::int64_t y_block, bool relu,
                 bool residual) {
  LayerCase c;
  c.name = "folded_" + name + (residual ? "_residual" : "") + (relu ? "_relu" : "");
  c.sources = {x};
  if (residual) c.sources.push_back({.shape = y, .block = y_block});
  const auto record = [options, residual](bool with_relu) {
    return [=](Program& p, const Ids& ids) {
      return conv_bn(
          p, ids[0], {"conv", "bn", ""}, options,
          {.mode = BatchNormMode::kRunning, .relu = with_relu, .residual = residual ? ids[1] : -1});
    };
  };
  c.record = record(relu);
  if (relu) c.smooth = record(false);
  return c;
}

LayerCase maximum(const std::string& name, const NodeHarness::Source& x,
                  const PoolOptions& options) {
  LayerCase c;
  c.name = "max_pool_" + name;
  c.sources = {x};
  c.record = [options](Program& p, const Ids& ids) { return max_pool(p, ids[0], "pool", options); };
  c.inputs = [x](std::uint64_t seed) {
    return std::vector<std::vector<float>>{distinct(x.shape.elements(), seed)};
  };
  return c;
}

LayerCase average(const std::string& name, const NodeHarness::Source& x,
                  const PoolOptions& options) {
  LayerCase c;
  c.name = "average_pool_" + name;
  c.sources = {x};
  c.record = [options](Program& p, const Ids& ids) {
    return average_pool(p, ids[0], "pool", options);
  };
  c.step = 0.5;
  return c;
}

LayerCase joined(const std::string& name, const Sources& inputs) {
  LayerCase c;
  c.name = "concat_" + name;
  c.sources = inputs;
  c.record = [](Program& p, const Ids& ids) { return concat(p, ids, "concat"); };
  c.step = 0.5;
  return c;
}

LayerCase global(const std::string& name, const NodeHarness::Source& x, PoolKind kind) {
  LayerCase c;
  c.name = "global_pool_" + name;
  c.sources = {x};
  c.record = [kind](Program& p, const Ids& ids) {
    return global_pool(p, ids[0], "pool", {.kind = kind, .gem = {}});
  };
  if (kind == PoolKind::kMax) {
    c.inputs = [x](std::uint64_t seed) {
      return std::vector<std::vector<float>>{distinct(x.shape.elements(), seed)};
    };
  }
  if (kind == PoolKind::kGem) {
    // Positive, as after a ReLU, and away from the clamp, where the power is curved most.
    c.inputs = [x](std::uint64_t seed) {
      std::vector<float> values = noise(x.shape.elements(), seed);
      for (float& v : values) v = 1.2F + v;
      return std::vector<std::vector<float>>{values};
    };
  }
  return c;
}

std::vector<LayerCase> make_cases() {
  const std::int64_t b = block();
  std::vector<LayerCase> cases;

  const NodeHarness::Source odd{.shape = Shape{2, 9, 7, 5}};
  const NodeHarness::Source blocks{.shape = Shape{3, 7, 6, 2 * b}, .block = b};
  const NodeHarness::Source image{.shape = Shape{2, 11, 9, 3}, .block = 1};
  const NodeHarness::Source image_without_gradient{.shape = Shape{2, 11, 9, 3},
                                                   .wants_gradient = false};
  cases.push_back(convolution("odd", odd, {7, {3, 3}, {2, 2}, {1, 1}}));
  cases.push_back(convolution("flat_kernel", odd, {4, {1, 3}, {1, 1}, {0, 1}}));
  cases.push_back(convolution("blocked_3x3", blocks, {b, {3, 3}, {1, 1}, {1, 1}}));
  cases.push_back(convolution("blocked_3x3_stride2", blocks, {3 * b, {3, 3}, {2, 2}, {1, 1}}));
  cases.push_back(convolution("blocked_1x1_stride2", blocks, {b, {1, 1}, {2, 2}, {0, 0}}));
  cases.push_back(convolution("stem", image, {2 * b, {7, 7}, {2, 2}, {3, 3}}));
  cases.push_back(convolution("first", image_without_gradient, {6, {3, 3}, {1, 1}, {1, 1}}));

  cases.push_back(convolution("1x7", blocks, {2 * b, {1, 7}, {1, 1}, {0, 3}}));
  cases.push_back(convolution("7x1", blocks, {b, {7, 1}, {1, 1}, {3, 0}}));
  // Whole blocks of channels on one side only.
  const NodeHarness::Source part{.shape = Shape{3, 7, 6, b + b / 2}};
  cases.push_back(convolution("to_part_of_a_block", blocks, {b + b / 2, {1, 1}, {1, 1}, {0, 0}}));
  cases.push_back(convolution("from_part_of_a_block", part, {2 * b, {3, 3}, {1, 1}, {1, 1}}));
  cases.push_back(convolution("from_part_of_a_block_stride2", part, {b, {3, 3}, {2, 2}, {0, 0}}));

  const NodeHarness::Source thin{.shape = Shape{3, 5, 3, 5}};
  // No larger than this: with 256 outputs, one of 200 draws still keeps them all more than 0.02
  // from the kink.
  const NodeHarness::Source wide{.shape = Shape{2, 2, 2, 2 * b}, .block = b};
  const NodeHarness::Source two{.shape =
                                    Shape{2, 1, 1, 3}};  // two values a channel: the least there is
  for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
    for (const bool relu_behind : {false, true}) {
      for (const bool residual : {false, true}) {
        cases.push_back(normalisation("odd", thin, mode, relu_behind, residual));
        cases.push_back(normalisation("blocked", wide, mode, relu_behind, residual));
      }
    }
    cases.push_back(normalisation("one_pixel", two, mode, false, false));
  }

  const NodeHarness::Source small{.shape = Shape{2, 2, 2, b}, .block = b};
  for (const bool relu_behind : {false, true}) {
    for (const bool residual : {false, true}) {
      cases.push_back(folded("odd", thin, {3, {3, 3}, {2, 2}, {1, 1}}, Shape{3, 3, 2, 3}, 0,
                             relu_behind, residual));
      cases.push_back(folded("blocked", small, {2 * b, {1, 1}, {1, 1}, {0, 0}},
                             Shape{2, 2, 2, 2 * b}, b, relu_behind, residual));
      cases.push_back(folded("to_part_of_a_block", small, {b + b / 2, {1, 1}, {1, 1}, {0, 0}},
                             Shape{2, 2, 2, b + b / 2}, 0, relu_behind, residual));
    }
  }

  LayerCase rectifier{.name = "relu", .sources = {odd}};
  rectifier.record = [](Program& p, const Ids& ids) { return relu(p, ids[0], "relu"); };
  rectifier.inputs = [odd](std::uint64_t seed) {
    std::vector<float> values = noise(odd.shape.elements(), seed);
    for (float& v : values) v += v < 0 ? -0.05F : 0.05F;
    return std::vector<std::vector<float>>{values};
  };
  cases.push_back(rectifier);
  LayerCase sum{.name = "add", .sources = {odd, odd}, .step = 0.5};
  sum.record = [](Program& p, const Ids& ids) { return add(p, ids[0], ids[1], "add"); };
  cases.push_back(sum);

  cases.push_back(maximum("odd", odd, {}));
  cases.push_back(maximum("blocked", blocks, {}));
  cases.push_back(maximum("ceil", odd, {{2, 2}, {2, 2}, {0, 0}, true}));
  cases.push_back(maximum("overlapping", thin, {{3, 3}, {1, 1}, {1, 1}, false}));
  cases.push_back(maximum("ceil_odd", odd, {{3, 3}, {2, 2}, {0, 0}, true}));
  cases.push_back(maximum("ceil_overlapping", blocks, {{3, 3}, {1, 1}, {1, 1}, true}));
  cases.push_back(average("odd", odd, {{3, 3}, {1, 1}, {1, 1}, false}));
  cases.push_back(average("blocked", blocks, {{3, 3}, {1, 1}, {1, 1}, false}));
  cases.push_back(average("stride2", odd, {{3, 2}, {2, 3}, {1, 0}, false}));
  cases.push_back(average("ceil", blocks, {{3, 3}, {2, 2}, {1, 1}, true}));
  cases.push_back(joined("odd", {{.shape = Shape{2, 3, 5, 7}}, {.shape = Shape{2, 3, 5, 1}}}));
  cases.push_back(joined("blocked", {{.shape = Shape{2, 3, 5, b}, .block = b},
                                     {.shape = Shape{2, 3, 5, 3 * b}, .block = b},
                                     {.shape = Shape{2, 3, 5, 2 * b}, .block = b}}));
  LayerCase reordered{.name = "reorder", .sources = {blocks}, .step = 0.5};
  reordered.record = [b](Program& p, const Ids& ids) {
    if (p.on_gpu()) return ids[0];  // a GPU has only one layout
    const Shape& shape = p.shape(ids[0]);
    auto node = reorder_node("reorder", p.context().threads(), image_layout(shape, b),
                             image_layout(shape, 2 * b));
    return p.append(std::move(node), {{.tensor = ids[0]}}, {.name = "reorder", .shape = shape});
  };
  cases.push_back(reordered);
  for (const auto& [name, source] : {std::pair{"odd", odd}, std::pair{"blocked", blocks}}) {
    const std::string suffix = std::string("_") + name;
    cases.push_back(global("average" + suffix, source, PoolKind::kAverage));
    cases.push_back(global("max" + suffix, source, PoolKind::kMax));
    cases.push_back(global("gem" + suffix, source, PoolKind::kGem));
  }

  const NodeHarness::Source rows{.shape = Shape{5, 13}};
  LayerCase product{.name = "linear", .sources = {rows}, .step = 0.5};
  product.record = [](Program& p, const Ids& ids) {
    return linear(p, ids[0], "fc", {.out_features = 7});
  };
  cases.push_back(product);
  product.name = "linear_without_bias";
  product.record = [](Program& p, const Ids& ids) {
    return linear(p, ids[0], "fc", {.out_features = 16, .bias = false});
  };
  cases.push_back(product);
  LayerCase unit{.name = "l2norm", .sources = {rows}};
  unit.record = [](Program& p, const Ids& ids) { return l2norm(p, ids[0], "unit"); };
  cases.push_back(unit);
  return cases;
}

}  // namespace

const std::vector<LayerCase>& layer_cases() {
  static const std::vector<LayerCase> cases = make_cases();
  return cases;
}

void randomise(Parameters& parameters) {
  for (std::size_t id = 0; id < parameters.entries().size(); ++id) {
    const Parameters::Entry& entry = parameters.entries()[id];
    std::vector<float> values = noise(entry.elements(), 100 + id);
    const bool gamma = entry.shape.rank() == 1 && entry.name.ends_with(".weight");
    for (float& v : values) v = gamma ? 1.0F + 0.4F * v : 0.6F * v;
    parameters.set(parameters.values(), static_cast<ParameterId>(id), values.data());
  }
  for (std::size_t id = 0; id < parameters.buffers().size(); ++id) {
    const Parameters::BufferEntry& entry = parameters.buffers()[id];
    if (entry.counter) continue;
    const std::vector<float> values = noise(entry.elements, 200 + id);
    const bool variance = entry.name.ends_with("running_var");
    for (std::size_t i = 0; i < values.size(); ++i) {
      parameters.buffer(static_cast<BufferId>(id))[i] =
          variance ? 1.0F + 0.4F * values[i] : 0.3F * values[i];
    }
  }
}

}  // namespace rk
