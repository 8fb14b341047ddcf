#include "tools/bench/step/bench_step_device.h"

#include "engine/device/cuda/context.h"
#include "engine/driver/profile.h"
#include "engine/system/signals.h"
#include "layers/conv2d.h"
#include "layers/graphs/graph_runner.h"
#include "tools/bench/gpu_rates.h"
#include "tools/bench/step/timed_step.h"
#include "tools/bench/work_timer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

namespace rk {
namespace {

constexpr std::size_t kStepWarmUp = 20;  // clocks rise, kernels are loaded, the step is captured

double milliseconds_together(const Context& context, TimedStep& step) {
  WorkTimer timer(context);
  const double ms = timer.milliseconds([&] {
    for (int s = 0; s < DeviceStepTimes::kTogether; ++s) {
      stop_if_interrupted();
      step.run();
    }
  });
  step.finish();
  return ms / DeviceStepTimes::kTogether;
}

}  // namespace

double dense_rate(const std::string& gpu, Precision precision) {
  struct Card {
    const char* name;
    std::array<double, 4> tera_flop;  // fp32, tf32, fp16, bf16
  };
  // Longer names first, since "H100" is a prefix of other boards, which are slower.
  static constexpr std::array<Card, 8> kCards = {{{"GH200", {67, 494.5, 989, 989}},
                                                  {"H200 NVL", {60, 417.5, 835, 835}},
                                                  {"H200", {67, 494.5, 989, 989}},
                                                  {"H100 NVL", {60, 417.5, 835, 835}},
                                                  {"H100 PCIe", {51, 378, 756, 756}},
                                                  {"H100", {67, 494.5, 989, 989}},
                                                  {"A100", {19.5, 156, 312, 312}},
                                                  {"B200", {75, 1100, 2200, 2200}}}};
  const auto is = [&](const std::string& name) {
    const std::size_t at = gpu.find(name);
    if (at == std::string::npos) return false;
    const auto part_of_a_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0;
    };
    const std::size_t end = at + name.size();
    return (at == 0 || !part_of_a_word(gpu[at - 1])) &&
           (end == gpu.size() || !part_of_a_word(gpu[end]));
  };
  for (const Card& card : kCards) {
    if (!is(card.name)) continue;
    return card.tera_flop[static_cast<std::size_t>(precision)] * 1e12 / 2;
  }
  return 0;
}

double convolution_floor(const Program& program, Precision precision, double copy_rate,
                         double math_rate) {
  const auto width = static_cast<double>(size_of(image_type(precision)));
  double seconds = 0;
  for (std::size_t n = 0; n < program.nodes().size(); ++n) {
    const auto* node = dynamic_cast<const ConvolutionNode*>(program.nodes()[n].get());
    if (node == nullptr) continue;
    const ConvolutionGeometry& g = node->geometry();
    const Shape& weight = g.weight;
    const auto x = static_cast<double>(g.x.elements()), y = static_cast<double>(g.y.elements());
    const auto w = static_cast<double>(weight.elements());
    const double products = y * w / static_cast<double>(weight[0]);
    const double bytes = (x + y + w) * width;
    const double once = std::max(bytes / copy_rate, math_rate > 0 ? products / math_rate : 0.0);
    const bool input_gradient = program.wants_gradient(program.tape().links[n].inputs[0].tensor);
    seconds += once * (input_gradient ? 3 : 2);
  }
  return seconds * 1e3;
}

DeviceStepTimes time_device_step(const Context& context, const TrainerOptions& options, int repeats,
                                 std::uint64_t seed, const std::string& plans) {
  if (!plans.empty()) set_plans(context, GpuPlans::read(plans));
  DeviceStepTimes times;
  times.copy_rate = gpu_copy_rate(context.cuda());  // while the step does not take its memory yet
  const auto started = std::chrono::steady_clock::now();
  TimedStep step(context, options, seed);
  const std::chrono::duration<double> starting = std::chrono::steady_clock::now() - started;
  times.start_seconds = starting.count();
  std::vector<double> steps;
  const std::size_t count = kStepWarmUp + static_cast<std::size_t>(repeats);
  for (std::size_t number = 0; number < count; ++number) {
    stop_if_interrupted();
    const double ms = step.run();
    if (number >= kStepWarmUp) steps.push_back(ms);
  }
  step.finish();
  times.captured = step.trainer().train_step().captured();
  times.card_ms = milliseconds_together(context, step);
  {
    const ProfileRange range(kMeasuredRange);
    step.run();
    step.finish();
  }
  const Program& program = step.trainer().program();
  if (!plans.empty()) times.plans = plans_taken(context);
  times.step = summarize(steps);
  times.math_rate = dense_rate(context.gpu_name(), options.precision);
  times.floor_ms = convolution_floor(program, options.precision, times.copy_rate, times.math_rate);
  times.bytes = step.reserved();
  times.device_name = context.gpu_name();
  times.ways = program.implementations();
  return times;
}

}  // namespace rk
