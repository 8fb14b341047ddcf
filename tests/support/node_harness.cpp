#include "tests/support/node_harness.h"
#include "engine/base/integers.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/support/stored_images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rk {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSentinel = -7.7e7F;
enum Own : std::size_t { kOutput, kOutputGradient, kSaved, kWorkspace };

void store(const Program& program, TensorId id, const std::vector<float>& values,
           const GuardedMemory& memory) {
  expect(values.size() == memory.values().size(), "[harness] expected {} values, got {}",
         memory.values().size(), values.size());
  std::ranges::copy(as_stored(program, id, values), memory.data());
}

std::vector<float> load(const Program& program, TensorId id, const GuardedMemory& memory) {
  return from_stored(program, id, memory.data());
}

// Compares bits, so that NaN equals itself.
bool same(std::span<const float> a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

std::int64_t floats(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
}

struct Recorded {
  TensorId output;
  std::size_t nodes;  // after the sources
};

Recorded recorded(Program& program, const std::vector<NodeHarness::Source>& sources,
                  const NodeHarness::Record& record) {
  std::vector<TensorId> ids;
  for (const NodeHarness::Source& source : sources) {
    if (!source.wants_gradient) {
      ids.push_back(program.input("input", source.shape));
      continue;
    }
    ids.push_back(program.append(std::make_unique<SourceNode>(source.block), {},
                                 {.name = "source", .shape = source.shape}));
  }
  const std::size_t before = program.nodes().size();
  const TensorId output = record(program, ids);
  program.set_output(output);
  program.lay_out();
  return {output, program.nodes().size() - before};
}

}  // namespace

GuardedMemory::GuardedMemory(std::int64_t floats)
    : floats_(floats), memory_(Buffer::of<float>(floats + 2 * kGuard)) {
  std::fill_n(memory_.as<float>(), floats + 2 * kGuard, kSentinel);
  poison();
}

void GuardedMemory::poison() const { std::ranges::fill(values(), kNan); }

bool GuardedMemory::intact() const {
  const auto untouched = [](float x) { return x == kSentinel; };
  const float* all = memory_.as<float>();
  return std::all_of(all, all + kGuard, untouched) &&
         std::all_of(all + kGuard + floats_, all + 2 * kGuard + floats_, untouched);
}

bool NodeHarness::reads(int threads, const std::vector<Source>& sources, const Record& record) {
  const Context context(threads);
  Parameters parameters;
  Program program(context, parameters, {.gradients = true});
  return recorded(program, sources, record).nodes == 1;
}

NodeHarness::NodeHarness(int threads, const std::vector<Source>& sources, const Record& record,
                         EdgeMode mode)
    : context_(threads), program_(context_, parameters_, {.gradients = true}), mode_(mode) {
  const Recorded all = recorded(program_, sources, record);
  expect(all.nodes == 1,
         "[harness] expected one node, got {}: the layer wants an input in another layout than the "
         "case's",
         all.nodes);
  output_ = all.output;
  node_ = program_.nodes().back().get();
  claims_ = program_.tape().links.back().inputs;
  parameters_.initialise(context_, 7);
  for (const NodeInput& claim : claims_) {
    const bool wanted = program_.wants_gradient(claim.tensor);
    memory_.uses.push_back(
        {.wanted = wanted, .accumulate = wanted && mode == EdgeMode::kAccumulate});
  }
  node_->plan(memory_.uses);
  Carver saved_size, workspace_size;
  node_->carve(saved_size, workspace_size);

  own_.emplace_back(program_.shape(output_).elements());
  own_.emplace_back(program_.shape(output_).elements());
  own_.emplace_back(floats(saved_size.used()));
  own_.emplace_back(floats(workspace_size.used()));
  const auto view = [&](TensorId id, float* data) {
    return dense_tensor(data, DType::kFloat32, program_.shape(id), program_.channel_block(id));
  };
  bool placed = false;
  for (const NodeInput& claim : claims_) {
    inputs_.push_back(claim.tensor);
    const std::int64_t elements = program_.shape(claim.tensor).elements();
    values_.emplace_back(elements);
    gradients_.emplace_back(elements);
    memory_.inputs.push_back(view(claim.tensor, values_.back().data()));
    float* gradient = nullptr;
    if (program_.wants_gradient(claim.tensor)) {
      gradient = gradients_.back().data();
      if (mode == EdgeMode::kInPlace && claim.gradient_in_place && !placed) {
        gradient = own_[kOutputGradient].data();
        placed = true;
      }
    }
    memory_.input_gradients.push_back(view(claim.tensor, gradient));
    memory_.addends.push_back(view(claim.tensor, gradient));
    memory_.gradient_sums.push_back(nullptr);
  }
  memory_.output = view(output_, own_[kOutput].data());
  memory_.output_gradient = view(output_, own_[kOutputGradient].data());
  Carver saved(own_[kSaved].data()), workspace(own_[kWorkspace].data());
  node_->carve(saved, workspace);
  node_->bind(memory_);
}

NodeHarness::~NodeHarness() = default;

const Shape& NodeHarness::output_shape() const { return program_.shape(output_); }
const Shape& NodeHarness::input_shape(std::size_t i) const { return program_.shape(inputs_[i]); }

bool NodeHarness::has_in_place_input() const {
  return std::ranges::any_of(claims_, [](const NodeInput& c) { return c.gradient_in_place; });
}

std::vector<float> NodeHarness::forward(const std::vector<std::vector<float>>& inputs) {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    store(program_, inputs_[i], inputs.at(i), values_[i]);
  for (const GuardedMemory& memory : own_) memory.poison();
  const std::vector<float> parameters(parameters_.values().begin(), parameters_.values().end());
  std::vector<std::vector<float>> before;
  for (const GuardedMemory& value : values_) {
    before.emplace_back(value.values().begin(), value.values().end());
  }
  node_->forward();
  node_->count_forward();
  check();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    EXPECT_TRUE(same(values_[i].values(), before[i])) << "forward changed input " << i;
  }
  EXPECT_TRUE(same(parameters_.values(), parameters)) << "forward changed a parameter";
  return load(program_, output_, own_[kOutput]);
}

std::vector<std::vector<float>> NodeHarness::backward(
    const std::vector<float>& output_gradient, const std::vector<std::vector<float>>& initial) {
  store(program_, output_, output_gradient, own_[kOutputGradient]);
  own_[kWorkspace].poison();
  if (!program_.tape().tensor(output_).read_in_backward) own_[kOutput].poison();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!claims_[i].read_in_backward) values_[i].poison();
    gradients_[i].poison();
    if (mode_ == EdgeMode::kAccumulate && program_.wants_gradient(inputs_[i])) {
      store(program_, inputs_[i], initial.at(i), gradients_[i]);
    }
  }
  const std::vector<float> parameters(parameters_.values().begin(), parameters_.values().end());
  std::ranges::fill(parameters_.gradients(), kSentinel);
  for (std::size_t id = 0; id < parameters_.entries().size(); ++id) {
    std::fill_n(parameters_.gradient(static_cast<ParameterId>(id)),
                parameters_.entries()[id].elements(), kNan);
  }
  node_->backward();
  check();
  EXPECT_TRUE(same(parameters_.values(), parameters)) << "backward changed a parameter";
  std::vector<float> expected_padding(parameters_.gradients().begin(),
                                      parameters_.gradients().end());
  std::vector<bool> used(expected_padding.size(), false);
  for (const Parameters::Entry& entry : parameters_.entries()) {
    for (std::int64_t i = 0; i < entry.elements(); ++i) {
      used[at(entry.offset + i)] = true;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    EXPECT_TRUE(used[i] ? std::isfinite(expected_padding[i]) : expected_padding[i] == kSentinel)
        << "flat gradient " << i;
  }
  std::vector<std::vector<float>> gradients;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (memory_.input_gradients[i].data == nullptr) {
      gradients.emplace_back();
    } else if (memory_.input_gradients[i].data == memory_.output_gradient.data) {
      gradients.push_back(load(program_, inputs_[i], own_[kOutputGradient]));
    } else {
      gradients.push_back(load(program_, inputs_[i], gradients_[i]));
    }
  }
  return gradients;
}

void NodeHarness::check() const {
  for (const auto* memories : {&values_, &gradients_, &own_}) {
    for (std::size_t i = 0; i < memories->size(); ++i) {
      EXPECT_TRUE((*memories)[i].intact()) << node_->name() << " wrote beside its memory " << i;
    }
  }
}

double weigh(const std::vector<float>& output, const std::vector<float>& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    sum += static_cast<double>(output[i]) * static_cast<double>(weights[i]);
  }
  return sum;
}

std::vector<float> noise(std::int64_t count, std::uint64_t seed) {
  CounterRandom random(seed, 0, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& x : values) x = static_cast<float>(random.uniform(-1, 1));
  return values;
}

}  // namespace rk
