// The optimizer on a GPU against training/optimizer.cpp: the same bits with a loss scale of 1 or
// any power of two; also updates with a gradient that is not finite.
#include "kernels/cuda/step_kernels.h"
#include "tests/kernel_cases/kernel_case.h"
#include "training/optimizer.h"

#include <fmt/format.h>

#include <limits>

namespace rk {
namespace {

constexpr std::int64_t kCount = 9001;

// Ranges that begin and end within a pack, two of them adjacent; some elements are in no group.
const std::vector<OptimizerGroup>& groups() {
  static const std::vector<OptimizerGroup> list = {
      {1, 6, 1.0, 0.01}, {6, 4099, 2.0, 0.0}, {4101, 4102, 0.5, 0.1}, {4200, 9001, 1.0, 0.001}};
  return list;
}

class DeviceOptimizer {
 public:
  DeviceOptimizer(const OptimizerParams& params, const std::vector<float>& start,
                  const StepState& step)
      : params_(params),
        groups_(DeviceBuffer::copy_of(groups())),
        parameters_(DeviceBuffer::copy_of(start)),
        first_(DeviceBuffer::copy_of(std::vector<float>(start.size(), 0.0F))),
        second_(DeviceBuffer::copy_of(std::vector<float>(start.size(), 0.0F))),
        partial_(unwritten<double>(SquareSums{.count = kCount}.blocks())),
        step_(DeviceBuffer::copy_of(std::vector<StepState>{step})) {}

  void step(double rate, const std::vector<float>& gradients) {
    StepState now = state();
    now.rate = rate;
    step_.upload(&now, sizeof(now));
    const DeviceBuffer device_gradients = DeviceBuffer::copy_of(gradients);
    const SquareSums squares{kCount, device_gradients.as<float>(), partial_.as<double>()};
    launch(squares, nullptr);
    launch(FinishNorm{params_, squares.blocks(), partial_.as<double>(), step_.as<StepState>()},
           nullptr);
    launch(OptimizerStep{params_, step_.as<StepState>(), groups_.as<OptimizerGroup>(),
                         static_cast<int>(groups().size()), kCount, device_gradients.as<float>(),
                         parameters_.as<float>(), first_.as<float>(), second_.as<float>()},
           nullptr);
  }
  StepState state() const { return step_.values<StepState>()[0]; }
  std::vector<double> parameters() const { return read<float>(parameters_); }
  std::vector<double> first() const { return read<float>(first_); }
  std::vector<double> second() const { return read<float>(second_); }

 private:
  OptimizerParams params_;
  DeviceBuffer groups_, parameters_, first_, second_, partial_, step_;
};

std::vector<Checked> same_as_cpu(const OptimizerParams& params, float loss_scale) {
  MadeUp made_up(43);
  const auto start = made_up.normals<float>(kCount);
  DeviceOptimizer device(params, start, {.loss_scale = loss_scale});
  const Context context(1);
  Optimizer cpu(context, params, groups(), kCount);
  StepState state;
  std::vector<float> parameters = start;
  std::vector<double> norms, cpu_norms;
  for (int t = 1; t <= 4; ++t) {
    const auto gradients = made_up.normals<float>(kCount);
    const double rate = 0.01 / t;
    state.rate = rate;
    cpu.step(context, &state, parameters.data(), gradients.data());
    cpu_norms.push_back(state.norm);
    std::vector<float> scaled = gradients;
    for (float& g : scaled) g *= loss_scale;
    device.step(rate, scaled);
    norms.push_back(device.state().norm);
  }
  std::vector<Checked> out = {{"parameters", device.parameters(), widened(parameters), 0, 0},
                              {"norms", norms, cpu_norms, 1e-14, 0}};
  const auto states = cpu.states();
  for (std::size_t k = 0; k < states.size(); ++k) {
    const std::vector<float> values(states[k].values, states[k].values + states[k].count);
    out.push_back({std::string(states[k].name), k == 0 ? device.first() : device.second(),
                   widened(values), 0, 0});
  }
  return out;
}

// More elements than the most blocks take at once, each block 4096.
std::vector<Checked> norm_of_many() {
  constexpr std::int64_t kMany = 1024 * 4096 + 5001;
  const auto gradients = MadeUp(53).normals<float>(kMany);
  const DeviceBuffer device_gradients = DeviceBuffer::copy_of(gradients);
  const DeviceBuffer step = DeviceBuffer::copy_of(std::vector<StepState>{{}});
  const DeviceBuffer partial = unwritten<double>(SquareSums{.count = kMany}.blocks());
  const SquareSums squares{kMany, device_gradients.as<float>(), partial.as<double>()};
  launch(squares, nullptr);
  launch(FinishNorm{{}, squares.blocks(), partial.as<double>(), step.as<StepState>()}, nullptr);
  double sum = 0;
  for (const float g : gradients) sum += static_cast<double>(g) * static_cast<double>(g);
  // Sums of squares in double, in another order.
  return {{"norm", {step.values<StepState>()[0].norm}, {std::sqrt(sum)}, 1e-12, 0}};
}

// A gradient that is not finite changes only the loss scale and the count of skipped updates. If
// the scale is constant, no later gradient changes anything either.
std::vector<Checked> overflow(float bad, bool dynamic) {
  const auto start = MadeUp(47).normals<float>(kCount);
  const OptimizerParams params;
  DeviceOptimizer device(params, start, {.loss_scale = 1024, .dynamic_scale = dynamic});
  std::vector<float> gradients(at(kCount), 0.5F);
  gradients[8999] = bad;
  device.step(0.1, gradients);
  device.step(0.1, gradients);
  const StepState step = device.state();
  std::vector<double> numbers = {static_cast<double>(step.number),
                                 static_cast<double>(step.skipped), step.finite ? 1.0 : 0.0,
                                 static_cast<double>(step.loss_scale)};
  std::vector<Checked> out = {{"parameters", device.parameters(), widened(start), 0, 0},
                              {"m", device.first(), std::vector<double>(at(kCount), 0.0), 0, 0},
                              {"step", numbers, {0, 2, 0, dynamic ? 256.0 : 1024.0}, 0, 0}};
  gradients[8999] = 0.5F;
  device.step(0.1, gradients);
  const StepState after = device.state();
  numbers = {static_cast<double>(after.number), static_cast<double>(after.skipped),
             after.finite ? 1.0 : 0.0, static_cast<double>(after.gradient_factor)};
  // With a constant scale, which cannot fall, the run is halted.
  const std::vector<double> expected =
      dynamic ? std::vector<double>{1, 0, 1, 1.0 / 256} : std::vector<double>{0, 3, 0, 1.0 / 1024};
  out.push_back({"step after", numbers, expected, 0, 0});
  return out;
}

// FinishNorm alone, many times: the scale grows after kGrowthSteps good steps, to 2^24 and no more,
// and does not fall below 1.
std::vector<Checked> dynamic_scale() {
  const DeviceBuffer partial = DeviceBuffer::copy_of(std::vector<double>{9.0, 7.0});
  const DeviceBuffer bad =
      DeviceBuffer::copy_of(std::vector<double>{1.0, std::numeric_limits<double>::infinity()});
  const DeviceBuffer step = DeviceBuffer::copy_of(
      std::vector<StepState>{{.loss_scale = 4194304.0F, .dynamic_scale = true}});  // 2^22
  const auto finish = [&](const DeviceBuffer& from) {
    launch(FinishNorm{OptimizerParams(), 2, from.as<double>(), step.as<StepState>()}, nullptr);
  };
  std::vector<double> scales;
  const auto note = [&] {
    scales.push_back(static_cast<double>(step.values<StepState>()[0].loss_scale));
  };
  for (int i = 0; i < 1999; ++i) finish(partial);
  note();
  finish(partial);
  note();
  for (int i = 0; i < 4000; ++i) finish(partial);
  note();
  for (int i = 0; i < 1999; ++i) finish(partial);
  finish(bad);
  note();
  finish(partial);
  note();
  for (int i = 0; i < 30; ++i) finish(bad);
  note();
  return {{"scales", scales, {0x1p22, 0x1p23, 0x1p24, 0x1p23, 0x1p23, 1}, 0, 0},
          {"norm", {step.values<StepState>()[0].norm}, {INFINITY}, 0, 0}};
}

}  // namespace

void add_optimizer_cases(std::vector<KernelCase>& cases) {
  const std::vector<std::pair<std::string, OptimizerParams>> kinds = {
      {"adam", {}},
      {"adamw", {.kind = OptimizerKind::kAdamW, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-5}},
      {"sgd", {.kind = OptimizerKind::kSgd}},
      {"momentum", {.kind = OptimizerKind::kSgd, .momentum = 0.9}},
      {"clipped", {.clip_norm = 30}},  // below the norm of 9001 normals, about 95
      {"unclipped", {.clip_norm = 1e9}},
      {"nesterov", {.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true}},
  };
  for (const auto& [name, params] : kinds) {
    for (const float loss_scale : {1.0F, 1024.0F}) {
      cases.push_back({fmt::format("optimizer_{}_scale_{}", name, loss_scale),
                       [params = params, loss_scale] { return same_as_cpu(params, loss_scale); }});
    }
  }
  for (const bool dynamic : {false, true}) {
    cases.push_back({fmt::format("optimizer_infinite_{}", dynamic ? "dynamic" : "constant"),
                     [=] { return overflow(-INFINITY, dynamic); }});
    cases.push_back({fmt::format("optimizer_nan_{}", dynamic ? "dynamic" : "constant"),
                     [=] { return overflow(NAN, dynamic); }});
  }
  cases.push_back({"optimizer_dynamic_scale", dynamic_scale});
  cases.push_back({"optimizer_norm_of_many", norm_of_many});
}

}  // namespace rk
