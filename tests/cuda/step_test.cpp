// Whole training steps on a real GPU or the emulated one, against the trainer's on the CPU: several
// steps with momentum, so that state left behind by one step shows in the next.
#include "engine/base/error.h"
#include "tests/cuda/gpu.h"
#include "tests/support/messages.h"
#include "tests/support/parameter_id.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_group.h"
#include "tests/support/within.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"
#include "weights/atomic_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace rk {
namespace {

constexpr int kSize = 16;
constexpr std::int64_t kBatch = 16;

TrainerOptions options_of(const std::string& loss, BatchNormMode mode) {
  TrainerOptions options = small_trainer(loss, kBatch);
  options.batchnorm = mode;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.optimizer.momentum = 0.9;
  options.learning.weight_decay = 1e-4;
  options.learning.embedding_rate = 3.0;
  return options;
}

class GpuStepTest : public OnGpu {};

Context gpu_context() { return Context(2, Device{.cuda = true}); }

// How far two trainers' parameters lie apart, relative to how far a's moved from the start.
double apart(const Parameters& a, const Parameters& b, std::span<const float> start) {
  double difference = 0, moved = 0;
  // In canonical order: the devices store weights in different orders.
  for (std::size_t id = 0; id < a.entries().size(); ++id) {
    const auto elements = static_cast<std::size_t>(a.entries()[id].elements());
    std::vector<float> x(elements), y(elements), from(elements);
    a.get(a.values(), static_cast<ParameterId>(id), x.data());
    b.get(b.values(), static_cast<ParameterId>(id), y.data());
    a.get(start, static_cast<ParameterId>(id), from.data());
    for (std::size_t i = 0; i < elements; ++i) {
      difference += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2.0);
      moved += std::pow(static_cast<double>(x[i]) - static_cast<double>(from[i]), 2.0);
    }
  }
  return std::sqrt(difference / moved);
}

double distance(std::span<const float> a, std::span<const float> b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2.0);
  }
  return std::sqrt(squares);
}

struct Bounds {
  double loss, parameters;
};

void compare(const TrainerOptions& options, const Bounds& bounds, std::uint32_t steps = 4) {
  const Context cpu(2);
  TrainerOptions plain = options;
  plain.precision = Precision::kFp32;
  Trainer expected(cpu, plain);
  const std::vector<float> start(expected.parameters().values().begin(),
                                 expected.parameters().values().end());
  const std::vector<float> statistics(expected.parameters().statistics().begin(),
                                      expected.parameters().statistics().end());
  const Context gpu = gpu_context();
  Trainer got(gpu, options);
  for (std::uint32_t s = 0; s < steps; ++s) {
    const NoiseBatch batch(kBatch, static_cast<int>(options.model.crop), s);
    const StepResult a = expected.step(batch.get());
    const StepResult b = got.step(batch.get());
    ASSERT_TRUE(b.updated) << s;
    expect_within("loss", std::abs(b.loss - a.loss), bounds.loss * std::abs(a.loss));
    EXPECT_EQ(b.valid_queries, a.valid_queries);
    EXPECT_EQ(b.rate, a.rate);
    // Far less than a norm of nothing, or of a gradient that counts twice, would be off.
    expect_within("norm of the gradient", std::abs(b.gradient_norm - a.gradient_norm),
                  std::min(10 * bounds.parameters, 0.25) * a.gradient_norm);
  }
  got.download();
  expect_within("parameters", apart(expected.parameters(), got.parameters(), start),
                bounds.parameters);
  const double off = distance(got.parameters().statistics(), expected.parameters().statistics());
  const double moved = distance(expected.parameters().statistics(), statistics);
  if (moved > 0) {
    expect_within("statistics", off, bounds.parameters * moved);
  } else {
    EXPECT_EQ(off, 0) << "frozen statistics moved";
  }
  EXPECT_TRUE(std::ranges::equal(expected.parameters().counters(), got.parameters().counters()));
  EXPECT_EQ(got.steps(), expected.steps());
}

// Saves a trainer and loads it into another one.
void go_on(Trainer& from, Trainer& in, const TrainerOptions& options) {
  from.download();
  RunState run{};
  run.step = from.steps();
  run.settings = "{}";
  run.loss_scale = from.loss_scale();
  CheckpointWriter writer(options.model, run);
  from.save(writer);
  const TemporaryFolder folder;
  const std::string path = folder.in("last.h5");
  write_atomic(path, writer.finish());
  EXPECT_TRUE(in.load(Checkpoint(path)));
}

// Rounding in another order, through four steps: three to ten times what was measured, 3e-4 with
// proxies on an H100. Batch statistics over the 16 (or, in chunks, 8) pixels of the last layers
// amplify differences, more with each step, so those tests make fewer steps.
// A real GPU adds up in another order, and one activation whose ReLU flips by that changed some
// parameter by up to 4e-3.
Bounds when_frozen() { return {1e-4, rounds_as_a_card() ? 1e-2 : 1e-3}; }
constexpr Bounds kOnBatch{1e-3, 2e-2};

TEST_F(GpuStepTest, IsTheCpusStep) {
  compare(options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning), when_frozen());
  compare(options_of("smooth_ap:tau=0.1", BatchNormMode::kBatch), kOnBatch, 2);
}

TEST_F(GpuStepTest, EveryOptimizer) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    TrainerOptions options = options_of("fastap", BatchNormMode::kRunning);
    // Adam divides by the gradient's own size: with a small epsilon a gradient that is rounding
    // alone would make a step as large as any, of its sign.
    options.optimizer = {.kind = kind, .eps = 1e-3};
    // At 1e-3, the gradient grew to 75 times its length within the four steps, and one ReLU that
    // rounding flips in the second moved the loss of the fourth by a thousandth of it.
    options.schedule.rate = 1e-4;
    compare(options, when_frozen());
  }
}

TEST_F(GpuStepTest, ProxiesLearnToo) {
  TrainerOptions options = options_of("nsl", BatchNormMode::kRunning);
  options.learning.proxy_rate = 10.0;
  compare(options, when_frozen());
  // fp16's scale is also that of the proxies' gradient; a small one does not overflow at first.
  options.loss = parse_loss("nsl:scale=0.1");
  options.precision = Precision::kFp16;
  compare(options, {0.05, 0.4});
}

// Parameters that do not learn must not count in the norm for clipping.
TEST_F(GpuStepTest, FrozenLayersHaveNoGradient) {
  for (const BatchNormMode mode : {BatchNormMode::kRunning, BatchNormMode::kBatch}) {
    for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kFp16}) {
      SCOPED_TRACE(::testing::Message() << name_of(precision) << static_cast<int>(mode));
      TrainerOptions options = options_of("smooth_ap:tau=0.1", mode);
      options.frozen = {"conv1.", "bn1.", "layer1.", "layer2.0."};
      options.optimizer.clip_norm = 0.01;
      options.precision = precision;
      const bool frozen = mode == BatchNormMode::kRunning;
      compare(options,
              precision != Precision::kFp32 ? Bounds{0.05, 0.4}
              : frozen                      ? when_frozen()
                                            : kOnBatch,
              2);
      const Context gpu = gpu_context();
      Trainer trainer(gpu, options);
      trainer.step(NoiseBatch(kBatch, kSize).get());
      Parameters& parameters = trainer.parameters();
      parameters.download_gradients();
      EXPECT_TRUE(parameters.entries().front().frozen);
      for (const Parameters::Entry& entry : parameters.entries()) {
        const std::span<const float> own = parameters.gradients().subspan(
            static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.elements()));
        EXPECT_EQ(std::ranges::all_of(own, [](float g) { return g == 0; }), entry.frozen)
            << entry.name;
      }
    }
  }
}

TEST_F(GpuStepTest, ChunksGiveTheStepOfTheWholeBatch) {
  TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning);
  options.chunk = 4;
  compare(options, when_frozen());
  options = options_of("smooth_ap:tau=0.1", BatchNormMode::kBatch);
  options.chunk = 8;
  compare(options, kOnBatch, 1);
}

TEST_F(GpuStepTest, MemoryColumnsFillAndTurn) {
  TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning);
  options.memory_batches = 2;
  compare(options, when_frozen(), 5);
}

TEST_F(GpuStepTest, EveryPrecision) {
  for (const Precision precision : {Precision::kTf32, Precision::kFp16, Precision::kBf16}) {
    TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning);
    options.precision = precision;
    compare(options, {0.05, 0.4});
  }
}

// Pictures lie in cells (SpaceToDepth) if the first layer moves by two pixels; here in chunks.
TEST_F(GpuStepTest, PicturesInCells) {
  TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning);
  options.model.arch = "resnet18";
  options.model.crop = options.model.resize = 33;
  options.precision = Precision::kTf32;
  options.chunk = 4;
  // One ReLU that flips, between the emulated GPU's order of additions and that of oneDNN for AVX2,
  // moved the parameters by 5.3e-3.
  compare(options, rounds_as_a_card() ? Bounds{0.05, 0.4} : Bounds{1e-4, 2e-2}, 2);
}

// The same bits whether the step is captured or its kernels are started one by one.
TEST_F(GpuStepTest, ReplayIsEager) {
  std::vector<std::vector<float>> values;
  for (const bool graph : {true, false}) {
    TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kBatch);
    options.capture = graph;
    options.memory_batches = 1;
    const Context gpu = gpu_context();
    Trainer trainer(gpu, options);
    for (std::uint32_t s = 0; s < 4; ++s) trainer.step(NoiseBatch(kBatch, kSize, s).get());
    EXPECT_EQ(trainer.train_step().captured(), graph);
    trainer.download();
    values.emplace_back(trainer.parameters().values().begin(), trainer.parameters().values().end());
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST_F(GpuStepTest, WhatIsStagedAheadIsTheNextBatch) {
  const NoiseBatch first(kBatch, kSize, 0), second(kBatch, kSize, 1);
  const TrainerOptions options = options_of("fastap", BatchNormMode::kRunning);
  std::vector<double> losses;
  for (const bool ahead : {false, true}) {
    const Context gpu = gpu_context();
    Trainer trainer(gpu, options);
    EXPECT_FALSE(trainer.advance(first.get()));
    if (ahead) trainer.stage(second.get());
    trainer.finish();
    losses.push_back(trainer.step(second.get()).loss);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

// A step that is enqueued behind one under way must be the same step: losses, statistics, memory
// columns, the number of the update and the loss scale as when each step is waited for.
TEST_F(GpuStepTest, StepsBehindOneAnotherAreTheSameSteps) {
  for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
    TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kBatch);
    options.precision = precision;
    options.memory_batches = 2;
    options.optimizer = {.kind = OptimizerKind::kAdam};
    options.schedule.total = 6;
    options.schedule.kind = ScheduleKind::kCosine;
    const Context gpu = gpu_context();
    Trainer apart(gpu, options), together(gpu, options);
    std::vector<StepResult> expected, got;
    constexpr std::uint32_t kSteps = 6;
    for (std::uint32_t s = 0; s < kSteps; ++s) {
      expected.push_back(apart.step(NoiseBatch(kBatch, kSize, s).get()));
      const auto before = together.advance(NoiseBatch(kBatch, kSize, s).get());
      ASSERT_EQ(before.has_value(), s > 0);
      if (before) got.push_back(*before);
      if (s % 2 == 0) together.stage(NoiseBatch(kBatch, kSize, s + 1).get());
    }
    EXPECT_EQ(together.steps_in_flight(), 1);
    got.push_back(together.finish().value());
    EXPECT_FALSE(together.finish());
    for (std::uint32_t s = 0; s < kSteps; ++s) {
      EXPECT_EQ(got[s].loss, expected[s].loss) << s;
      EXPECT_EQ(got[s].valid_queries, expected[s].valid_queries) << s;
      EXPECT_EQ(got[s].gradient_norm, expected[s].gradient_norm) << s;
      EXPECT_EQ(got[s].rate, expected[s].rate) << s;
    }
    apart.download();
    together.download();
    EXPECT_TRUE(std::ranges::equal(apart.parameters().values(), together.parameters().values()));
    EXPECT_TRUE(
        std::ranges::equal(apart.parameters().statistics(), together.parameters().statistics()));
    EXPECT_EQ(apart.loss_scale().good_steps, together.loss_scale().good_steps);
  }
}

// Gradients that overflow fp16 change nothing but the scale, which then comes down.
TEST_F(GpuStepTest, OverflowIsSkippedAndTheScaleHalved) {
  // A steep loss, whose gradient is about 1 / tau, above a network deep enough to amplify it.
  TrainerOptions options = options_of("smooth_ap:tau=0.0003", BatchNormMode::kRunning);
  options.model.arch = "resnet18";
  options.model.crop = options.model.resize = 32;
  options.precision = Precision::kFp16;
  const Context gpu = gpu_context();
  Trainer trainer(gpu, options);
  trainer.download();
  const std::vector<float> start(trainer.parameters().values().begin(),
                                 trainer.parameters().values().end());
  const double scale = trainer.loss_scale().scale;
  const StepResult result = trainer.step(NoiseBatch(kBatch, 32).get());
  EXPECT_FALSE(result.updated);
  trainer.download();
  EXPECT_TRUE(std::ranges::equal(start, trainer.parameters().values()));
  EXPECT_EQ(trainer.loss_scale().scale, scale / 2);
  EXPECT_EQ(trainer.loss_scale().updates, 0);
  EXPECT_EQ(trainer.steps(), 1);
  Trainer next(gpu, options);
  go_on(trainer, next, options);
  next.download();
  EXPECT_EQ(next.loss_scale().scale, scale / 2);
}

TEST_F(GpuStepTest, DivergenceWithoutAScaleIsSaidAndChangesNothing) {
  const Context gpu = gpu_context();
  Trainer trainer(gpu, options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning));
  trainer.parameters().value(0)[0] = std::numeric_limits<float>::infinity();
  trainer.upload();
  const std::vector<float> start(trainer.parameters().values().begin() + 1,
                                 trainer.parameters().values().end());
  EXPECT_THROW(trainer.step(NoiseBatch(kBatch, kSize).get()), DivergedError);
  trainer.download();
  EXPECT_TRUE(std::ranges::equal(start, trainer.parameters().values().subspan(1)));
  EXPECT_FALSE(trainer.activations().empty());
}

// When the host learns of a divergence, the next step is already under way.
TEST_F(GpuStepTest, DivergenceIsThatOfItsOwnBatchWhenTheNextStepHasBegun) {
  const TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning);
  const NoiseBatch first(kBatch, kSize, 0), second(kBatch, kSize, 1), third(kBatch, kSize, 2);
  Batch bad = second.get();
  bad.index = 6;
  std::vector<std::vector<LayerActivations>> layers;
  std::vector<std::vector<std::string>> gradients;
  for (const bool behind : {false, true}) {
    const Context gpu = gpu_context();
    Trainer trainer(gpu, options);
    trainer.step(first.get());
    trainer.download();
    trainer.parameters().value(0)[0] = std::numeric_limits<float>::infinity();
    trainer.upload();
    const std::vector<float> start(trainer.parameters().values().begin() + 1,
                                   trainer.parameters().values().end());
    EXPECT_FALSE(trainer.advance(bad));
    std::string said;
    try {
      if (behind) {
        trainer.advance(third.get());
      } else {
        trainer.finish();
      }
    } catch (const DivergedError& error) {
      said = error.what();
    }
    EXPECT_TRUE(holds(said, "in step 2 (batch 7 of epoch 1)"));
    EXPECT_TRUE(std::ranges::equal(trainer.last_batch().indices, bad.indices));
    EXPECT_EQ(trainer.steps(), 1);
    trainer.download();
    EXPECT_TRUE(std::ranges::equal(start, trainer.parameters().values().subspan(1)));
    trainer.parameters().download_gradients();
    gradients.push_back(trainer.not_finite(trainer.parameters().gradients()));
    layers.push_back(trainer.activations());
  }
  EXPECT_FALSE(gradients[0].empty());
  EXPECT_EQ(gradients[0], gradients[1]);
  ASSERT_EQ(layers[0].size(), layers[1].size());
  for (std::size_t l = 0; l < layers[0].size(); ++l) {
    EXPECT_EQ(layers[0][l].max_abs, layers[1][l].max_abs) << layers[0][l].name;
    EXPECT_EQ(layers[0][l].not_finite, layers[1][l].not_finite) << layers[0][l].name;
  }
}

// A batch that cannot be begun leaves the step in front of it, which is under way, to be saved.
TEST_F(GpuStepTest, ABatchThatIsRefusedEndsBehindTheStepUnderWay) {
  const TrainerOptions options = options_of("nsl", BatchNormMode::kRunning);
  const NoiseBatch first(kBatch, kSize, 0), second(kBatch, kSize, 1);
  const Context gpu = gpu_context();
  Trainer expected(gpu, options), got(gpu, options);
  expected.step(first.get());
  expected.download();
  Batch bad = second.get();
  std::vector<std::int64_t> labels(bad.labels.begin(), bad.labels.end());
  labels[3] = options.classes;
  bad.labels = labels;
  EXPECT_FALSE(got.advance(first.get()));
  std::string said;
  try {
    got.advance(bad);
  } catch (const DivergedError& error) {
    said = error.what();
  }
  EXPECT_TRUE(holds(said, "in step 2"));
  EXPECT_TRUE(holds(said, "labels: row 3 holds 4, but there are 4 proxies"));
  EXPECT_EQ(got.steps(), 1);
  got.download();
  EXPECT_TRUE(std::ranges::equal(expected.parameters().values(), got.parameters().values()));
}

// A proxy that is finite but larger than a loss accepts has a finite loss and gradient. Even so, no
// step may be made on it, nor on the batch behind it.
TEST_F(GpuStepTest, AProxyThatIsTooLargeChangesNothing) {
  const TrainerOptions options = options_of("nsl", BatchNormMode::kRunning);
  const NoiseBatch first(kBatch, kSize, 0), second(kBatch, kSize, 1);
  const Context gpu = gpu_context();
  Trainer trainer(gpu, options);
  trainer.download();
  trainer.parameters().value(id_of(trainer.parameters(), "proxies"))[3] = 2e10F;
  trainer.upload();
  const std::vector<float> start(trainer.parameters().values().begin(),
                                 trainer.parameters().values().end());
  EXPECT_FALSE(trainer.advance(first.get()));
  EXPECT_THROW(trainer.advance(second.get()), DivergedError);
  trainer.download();
  EXPECT_TRUE(std::ranges::equal(start, trainer.parameters().values()));
}

// Saved after some steps and loaded by another trainer, the run must continue to the same bits:
// optimizer, memory, loss scale and statistics are all in the file.
TEST_F(GpuStepTest, ResumesToTheSameBits) {
  for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
    TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kBatch);
    options.precision = precision;
    options.memory_batches = 2;
    options.optimizer = {.kind = OptimizerKind::kAdam};  // whose steps depend on their number
    const Context gpu = gpu_context();
    Trainer straight(gpu, options), first(gpu, options), second(gpu, options);
    for (std::uint32_t s = 0; s < 5; ++s) straight.step(NoiseBatch(kBatch, kSize, s).get());
    for (std::uint32_t s = 0; s < 3; ++s) first.step(NoiseBatch(kBatch, kSize, s).get());
    go_on(first, second, options);
    for (std::uint32_t s = 3; s < 5; ++s) second.step(NoiseBatch(kBatch, kSize, s).get());
    straight.download();
    second.download();
    EXPECT_TRUE(std::ranges::equal(straight.parameters().values(), second.parameters().values()));
    EXPECT_TRUE(
        std::ranges::equal(straight.parameters().statistics(), second.parameters().statistics()));
    EXPECT_EQ(second.loss_scale().updates, straight.loss_scale().updates);
    EXPECT_EQ(second.loss_scale().scale, straight.loss_scale().scale);
    EXPECT_EQ(second.loss_scale().good_steps, straight.loss_scale().good_steps);
  }
}

// Several GPUs, each with a share of the batch, make the step of one.
TEST_F(GpuStepTest, SeveralGpusShareABatch) {
  if (!threads_have_gpus()) GTEST_SKIP() << "for processes: make gpu-proof PIECE=two-gpus";
  for (const std::int64_t chunk : {0, 4}) {
    TrainerOptions options = options_of("smooth_ap:tau=0.1", BatchNormMode::kRunning);
    const Context gpu = gpu_context();
    Trainer one(gpu, options);
    const std::vector<float> start(one.parameters().values().begin(),
                                   one.parameters().values().end());
    for (std::uint32_t s = 0; s < 3; ++s) one.step(NoiseBatch(kBatch, kSize, s).get());
    one.download();
    options.chunk = chunk;
    ThreadGroup::run(2, [&](ProcessGroup& group) {
      TrainerOptions mine = options;
      mine.processes = &group;
      const Context own = gpu_context();
      Trainer trainer(own, mine);
      for (std::uint32_t s = 0; s < 3; ++s) {
        const NoiseBatch batch(kBatch, kSize, s);
        trainer.step(batch.part(group.rank(), 2));
      }
      trainer.download();
      expect_within("parameters", apart(one.parameters(), trainer.parameters(), start),
                    when_frozen().parameters);
    });
  }
}

}  // namespace
}  // namespace rk
