#include "training/trainer.h"

#include "tests/support/messages.h"
#include "tests/support/parameter_id.h"
#include "tests/support/thread_group.h"
#include "tests/training/noise_batch.h"
#include "training/model_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace rk {
namespace {

constexpr int kSize = 16;
constexpr double kNoRate = 1e-30;  // a step of Adam moves only parameters that are 0

TrainerOptions small_options(const std::string& loss, BatchNormMode batchnorm) {
  TrainerOptions options = small_trainer(loss, 16);
  options.batchnorm = batchnorm;
  return options;
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

// Gradients must agree within 2e-4 of each parameter's largest.
void expect_same_gradients(const Parameters& expected, const std::vector<float>& got,
                           const std::string& what) {
  for (const Parameters::Entry& entry : expected.entries()) {
    const float* a = expected.gradients().data() + entry.offset;
    const float* b = got.data() + entry.offset;
    float largest = 0, error = 0;
    for (std::int64_t i = 0; i < entry.elements(); ++i) {
      largest = std::max(largest, std::abs(a[i]));
      const float here = std::abs(a[i] - b[i]);
      if (here > error || std::isnan(here)) error = here;  // NaN stays
    }
    EXPECT_GT(largest, 0) << entry.name;
    EXPECT_LE(error, 2e-4F * largest) << what << ": " << entry.name;
  }
}

class TrainerTest : public testing::Test {
 protected:
  const Context context_{2};
};

// With frozen batch norm an image's embedding does not depend on its neighbours, so that only the
// order in which gradients are added up differs: float32 rounding over four terms for each sum, and
// what the backward pass makes of the differing low bits. Compared with the largest gradient of the
// same parameter.
TEST_F(TrainerTest, ChunksGiveTheGradientOfTheWholeBatch) {
  const NoiseBatch batch(16, kSize);
  for (const std::string loss : {"smooth_ap:tau=0.1", "nsl"}) {
    TrainerOptions options = small_options(loss, BatchNormMode::kRunning);
    Trainer whole(context_, options);
    const StepResult expected = whole.step(batch.get());
    for (const std::int64_t chunk : {16, 8, 4, 2}) {
      options.chunk = chunk;
      Trainer trainer(context_, options);
      const StepResult got = trainer.step(batch.get());
      EXPECT_NEAR(got.loss, expected.loss, 1e-5 * std::abs(expected.loss)) << loss << chunk;
      EXPECT_EQ(got.valid_queries, expected.valid_queries);
      expect_same_gradients(whole.parameters(), copy(trainer.parameters().gradients()),
                            fmt::format("{} in chunks of {}", loss, chunk));
      if (chunk < 16) continue;
      EXPECT_TRUE(copy(whole.parameters().gradients()) == copy(trainer.parameters().gradients()))
          << "one chunk is the whole batch itself";
    }
  }
}

TEST_F(TrainerTest, AChunksMemoryIsThatOfAChunk) {
  TrainerOptions options = small_options("smooth_ap", BatchNormMode::kBatch);
  const Trainer whole(context_, options);
  options.chunk = 4;
  const Trainer chunked(context_, options);
  const auto activations = [](const Trainer& trainer) {
    for (const auto& [name, bytes] : trainer.reserved()) {
      if (name.starts_with("activations")) return static_cast<double>(bytes);
    }
    return 0.0;
  };
  EXPECT_GT(activations(chunked), 0.2 * activations(whole));
  EXPECT_LT(activations(chunked), 0.3 * activations(whole));
}

// Where the last map is one pixel, batch norm makes one picture the same as any other.
TEST_F(TrainerTest, APictureByItselfIsNotNormalised) {
  TrainerOptions options = small_options("smooth_ap", BatchNormMode::kBatch);
  options.model.arch = "resnet18";
  options.model.crop = options.model.resize = 32;
  options.chunk = 1;
  EXPECT_TRUE(holds(message_of<std::invalid_argument>([&] { Trainer(context_, options); }),
                    "[resnet18] expected more than one picture at a time of 32 x 32 pixels"));
  options.chunk = 2;
  EXPECT_NO_THROW(Trainer(context_, options));
  options.chunk = 1;
  options.batchnorm = BatchNormMode::kRunning;
  EXPECT_NO_THROW(Trainer(context_, options));
}

// Each chunk counts once, as if it had been a batch: the second pass leaves no trace.
TEST_F(TrainerTest, RunningStatisticsMoveOncePerChunk) {
  TrainerOptions options = small_options("smooth_ap", BatchNormMode::kBatch);
  options.schedule.rate = kNoRate;
  options.chunk = 4;
  Trainer chunked(context_, options);
  const NoiseBatch batch(16, kSize, 0, 2);
  chunked.step(batch.get());
  options.batch = 4;
  options.chunk = 0;
  Trainer one_by_one(context_, options);
  for (std::int64_t c = 0; c < 4; ++c) one_by_one.step(batch.part(c, 4));
  EXPECT_EQ(copy(chunked.parameters().statistics()), copy(one_by_one.parameters().statistics()));
  const auto counters = chunked.parameters().counters();
  ASSERT_FALSE(counters.empty());
  for (const std::int64_t counter : counters) EXPECT_EQ(counter, 4);
}

// What a step leaves in a trainer, copied out of its thread.
struct AfterStep {
  StepResult result;
  std::vector<float> gradients, values, statistics;
  explicit AfterStep(Trainer& trainer, const StepResult& step)
      : result(step),
        gradients(copy(trainer.parameters().gradients())),
        values(copy(trainer.parameters().values())),
        statistics(copy(trainer.parameters().statistics())) {}
};

// Trains on `steps` batches of 16, each shared by several processes; returns the results by rank.
std::vector<AfterStep> shared_steps(TrainerOptions options, int processes, std::uint32_t steps) {
  std::vector<std::optional<AfterStep>> after(static_cast<std::size_t>(processes));
  ThreadGroup::run(processes, [&](ProcessGroup& group) {
    const Context context(1);
    TrainerOptions mine = options;
    mine.processes = &group;
    Trainer trainer(context, mine);
    StepResult result;
    for (std::uint32_t s = 0; s < steps; ++s) {
      const NoiseBatch batch(16, kSize, s);
      result = trainer.step(batch.part(group.rank(), group.size()));
    }
    after[static_cast<std::size_t>(group.rank())].emplace(trainer, result);
  });
  std::vector<AfterStep> all;
  for (const auto& one : after) all.push_back(*one);
  return all;
}

// Frozen batch norm, as for chunks: only the order in which gradients are added up differs. The
// second step sees memory, parameters and optimizer as the first one left them.
TEST_F(TrainerTest, ProcessesMakeTheStepOfTheWholeBatch) {
  for (const std::string loss : {"smooth_ap:tau=0.1", "nsl"}) {
    TrainerOptions options = small_options(loss, BatchNormMode::kRunning);
    if (loss != "nsl") options.memory_batches = 1;
    // Nothing moves, so that the second step's gradient shows no more than the first one's.
    options.schedule.rate = kNoRate;
    Trainer whole(context_, options);
    whole.step(NoiseBatch(16, kSize, 0).get());
    const StepResult expected = whole.step(NoiseBatch(16, kSize, 1).get());
    for (const int processes : {2, 4}) {
      for (const std::int64_t chunk : {0, 2}) {
        options.chunk = chunk;
        const std::string what = fmt::format("{}, {} processes, chunk {}", loss, processes, chunk);
        const std::vector<AfterStep> all = shared_steps(options, processes, 2);
        for (const AfterStep& one : all) {
          EXPECT_EQ(one.result.loss, all[0].result.loss) << what;
          EXPECT_EQ(one.values, all[0].values) << what;
        }
        EXPECT_NEAR(all[0].result.loss, expected.loss, 1e-5 * std::abs(expected.loss)) << what;
        EXPECT_EQ(all[0].result.valid_queries, expected.valid_queries);
        expect_same_gradients(whole.parameters(), all[0].gradients, what);
      }
      options.chunk = 0;
    }
  }
}

// The embedding layer is larger than a piece of the gradient's sum, which begins while those of the
// layers before it are still computed.
TEST_F(TrainerTest, ProcessesSumTheirGradientInPieces) {
  TrainerOptions options = small_options("contrastive", BatchNormMode::kRunning);
  options.model.dim = (std::int64_t{25} << 20) / sizeof(float) / 64 + 16;
  options.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0};
  options.schedule.rate = kNoRate;
  Trainer whole(context_, options);
  whole.step(NoiseBatch(16, kSize, 0).get());
  const std::vector<AfterStep> all = shared_steps(options, 2, 1);
  expect_same_gradients(whole.parameters(), all[0].gradients, "2 processes");
}

// With batch statistics, a process's share is normalised like a chunk of one process, but the
// running statistics become the mean over processes instead of moving from chunk to chunk.
TEST_F(TrainerTest, ProcessesNormaliseTheirSharesAsChunks) {
  TrainerOptions options = small_options("smooth_ap:tau=0.1", BatchNormMode::kBatch);
  options.schedule.rate = kNoRate;
  const std::vector<AfterStep> all = shared_steps(options, 2, 1);
  const NoiseBatch batch(16, kSize, 0);
  options.chunk = 8;
  Trainer chunked(context_, options);
  const StepResult expected = chunked.step(batch.get());
  EXPECT_NEAR(all[0].result.loss, expected.loss, 1e-5 * std::abs(expected.loss));
  expect_same_gradients(chunked.parameters(), all[0].gradients, "2 processes");

  options.batch = options.chunk = 8;
  std::vector<std::vector<float>> halves;
  for (const std::int64_t part : {0, 1}) {
    Trainer half(context_, options);
    half.step(batch.part(part, 2));
    halves.push_back(copy(half.parameters().statistics()));
  }
  EXPECT_EQ(all[0].statistics, all[1].statistics);
  float differing = 0;
  for (std::size_t i = 0; i < halves[0].size(); ++i) {
    const float mean = (halves[0][i] + halves[1][i]) / 2;
    // Sums in another number of threads, and one rounding of the mean.
    ASSERT_NEAR(all[0].statistics[i], mean, 1e-5F * std::max(1.0F, std::abs(mean))) << i;
    differing = std::max(differing, std::abs(halves[0][i] - halves[1][i]));
  }
  EXPECT_GT(differing, 1e-3F) << "equal halves would show nothing";
}

TEST_F(TrainerTest, ProxiesStartAsThePapersCodeDoes) {
  TrainerOptions options = small_options("nsl", BatchNormMode::kRunning);
  options.model.dim = 64;
  options.classes = 500;
  const auto proxies = [&](const std::string& loss, std::uint64_t seed) {
    options.loss = parse_loss(loss);
    options.seed = seed;
    Trainer trainer(context_, options);
    const Parameters& parameters = trainer.parameters();
    const float* values = parameters.value(id_of(parameters, "proxies"));
    return std::vector<float>(values, values + std::ptrdiff_t{500} * 64);
  };
  const auto variance = [](const std::vector<float>& values) {
    double sum = 0;
    for (const float v : values) sum += static_cast<double>(v) * v;
    return sum / static_cast<double>(values.size());
  };
  // 32,000 numbers: their variance scatters by sqrt(2/32000) = 0.8 % where they are normal.
  const std::vector<float> nsl = proxies("nsl", 1), anchor = proxies("proxy_anchor", 1);
  const float bound = 1 / 8.0F;  // 1/sqrt(D)
  EXPECT_LE(*std::max_element(nsl.begin(), nsl.end()), bound);
  EXPECT_GE(*std::min_element(nsl.begin(), nsl.end()), -bound);
  EXPECT_NEAR(variance(nsl), 1.0 / 64 / 3, 0.03 / 64 / 3);
  EXPECT_NEAR(variance(anchor), 2.0 / 500, 0.04 * 2 / 500);
  EXPECT_GT(*std::max_element(anchor.begin(), anchor.end()), 3 * std::sqrt(2.0F / 500));
  EXPECT_EQ(proxies("nsl", 1), nsl);
  EXPECT_NE(proxies("nsl", 2), nsl);
}

// Plain SGD again: each group by its own factor, and all pulled towards zero.
TEST_F(TrainerTest, EveryGroupLearnsAtItsRateAndDecays) {
  for (const char* loss : {"nsl", "proxy_anchor"}) {
    SCOPED_TRACE(loss);
    TrainerOptions options = small_options(loss, BatchNormMode::kRunning);
    options.optimizer.kind = OptimizerKind::kSgd;
    options.optimizer.momentum = 0;
    options.learning.embedding_rate = 4;
    options.learning.proxy_rate = 20;
    options.learning.weight_decay = 0.25;
    Trainer trainer(context_, options);
    Parameters& parameters = trainer.parameters();
    const std::vector<float> before = copy(parameters.values());
    const NoiseBatch batch(16, kSize);
    trainer.step(batch.get());
    for (const Parameters::Entry& entry : parameters.entries()) {
      const double factor = entry.name == "proxies"                ? 20
                            : entry.name.starts_with("embedding.") ? 4
                                                                   : 1;
      double largest = 0, steepest = 0;
      for (std::int64_t i = 0; i < entry.elements(); ++i) {
        const auto at = static_cast<std::size_t>(entry.offset + i);
        const auto gradient = static_cast<double>(parameters.gradients()[at]);
        const double moved = 1e-3 * factor * (gradient + 0.25 * before[at]);
        // One rounding of the parameter.
        ASSERT_NEAR(parameters.values()[at], before[at] - moved,
                    1e-6 * std::max(1.0, std::abs(static_cast<double>(before[at]))) +
                        1e-5 * std::abs(moved))
            << entry.name;
        largest = std::max(largest, std::abs(moved));
        steepest = std::max(steepest, std::abs(gradient));
      }
      EXPECT_GT(largest, entry.name.ends_with("bias") ? 0.0 : 1e-6) << entry.name;
      EXPECT_GT(steepest, 0) << entry.name;
    }
  }
}

// The rate of every step is the schedule's at that step, the first being step 0, and it is what the
// parameters move by.
TEST_F(TrainerTest, EveryStepTakesItsRateOfTheSchedule) {
  TrainerOptions options = small_options("smooth_ap:tau=0.1", BatchNormMode::kRunning);
  options.optimizer.kind = OptimizerKind::kSgd;
  options.optimizer.momentum = 0;
  options.schedule = {.kind = ScheduleKind::kCosine, .rate = 1e-2, .warmup = 2, .total = 6};
  Trainer trainer(context_, options);
  const Schedule schedule(options.schedule);
  Parameters& parameters = trainer.parameters();
  for (std::int64_t step = 0; step < 6; ++step) {
    const std::vector<float> before = copy(parameters.values());
    const NoiseBatch batch(16, kSize, static_cast<std::uint32_t>(step));
    const double rate = trainer.step(batch.get()).rate;
    EXPECT_EQ(rate, schedule.rate(step)) << step;
    // Along the gradient: sum of what moved times g over sum of g squared.
    double moved = 0, square = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double g = parameters.gradients()[i];
      moved += (static_cast<double>(before[i]) - parameters.values()[i]) * g;
      square += g * g;
    }
    EXPECT_NEAR(moved / square, rate, 1e-3 * rate) << step;  // roundings of single parameters
  }
}

TEST_F(TrainerTest, TheEmbeddingStartsAsAsked) {
  const auto products = [&](bool orthogonal) {
    TrainerOptions options = small_options("smooth_ap", BatchNormMode::kRunning);
    options.orthogonal_embedding = orthogonal;
    const Trainer trainer(context_, options);
    auto& parameters = const_cast<Trainer&>(trainer).parameters();
    const ParameterId id = id_of(parameters, "embedding.weight");
    std::vector<float> rows(static_cast<std::size_t>(parameters.entry(id).elements()));
    parameters.get(parameters.values(), id, rows.data());
    const std::size_t width = rows.size() / 8;
    double largest = 0;  // between two of the eight rows, of unit length
    for (std::size_t a = 0; a < 8; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        double dot = 0, aa = 0, bb = 0;
        for (std::size_t i = 0; i < width; ++i) {
          const double x = rows[a * width + i], y = rows[b * width + i];
          dot += x * y;
          aa += x * x;
          bb += y * y;
        }
        largest = std::max(largest, std::abs(dot) / std::sqrt(aa * bb));
      }
    }
    return largest;
  };
  EXPECT_LT(products(true), 1e-5);
  EXPECT_GT(products(false), 1e-3);  // of 28 pairs of 64 numbers: 0.125 is usual
}

// As PyTorch's nn.Linear of 64 inputs: uniform in +-1/8.
TEST_F(TrainerTest, TheEmbeddingsNumbersStartAsLargeAsItsInputsAllow) {
  for (const bool orthogonal : {false, true}) {
    TrainerOptions options = small_options("smooth_ap", BatchNormMode::kRunning);
    options.orthogonal_embedding = orthogonal;
    Trainer trainer(context_, options);
    const Parameters& parameters = trainer.parameters();
    const auto largest = [&](const char* name) {
      const Parameters::Entry& entry = parameters.entry(id_of(parameters, name));
      float most = 0;
      for (std::int64_t i = 0; i < entry.elements(); ++i) {
        most = std::max(
            most,
            std::abs(trainer.parameters().values()[static_cast<std::size_t>(entry.offset + i)]));
      }
      return most;
    };
    if (orthogonal) {
      EXPECT_EQ(largest("embedding.bias"), 0);
      continue;
    }
    for (const char* name : {"embedding.weight", "embedding.bias"}) {
      EXPECT_LE(largest(name), 0.125F) << name;
      EXPECT_GT(largest(name), 0.06F) << name;  // of eight biases one in 256 draws is smaller
    }
  }
}

// Nothing moves, so the loss's input can be reconstructed afterwards: the batch, and the two before
// it as columns without gradient.
TEST_F(TrainerTest, TheLossSeesTheLastBatches) {
  constexpr std::int64_t kBatch = 16, kDim = 8;
  TrainerOptions options = small_options("fastap:bins=10", BatchNormMode::kRunning);
  options.schedule.rate = kNoRate;
  options.memory_batches = 2;
  Trainer trainer(context_, options);
  Program program(context_, trainer.parameters(), {});
  const Network network = build_network(
      program, network_spec(options.model, BatchNormMode::kRunning), kBatch, kSize, kSize);
  program.plan();
  const auto loss = make_loss<float>(options.loss);
  loss->allocate(context_, {.rows = kBatch, .memory = 2 * kBatch, .dim = kDim});

  std::vector<std::vector<float>> embeddings;
  std::vector<std::int64_t> labels, image_ids;  // of all batches so far
  // The fourth batch has the second's images again: their columns in the memory must not count for
  // their own queries.
  const std::uint32_t seeds[] = {0, 1, 2, 1, 0};
  for (std::size_t step = 0; step < 5; ++step) {
    const NoiseBatch batch(kBatch, kSize, seeds[step]);
    fill_input(program, network.input, float_table(options.model), batch.get().pixels);
    program.forward();
    const float* rows = program.value(network.embeddings);
    LossInput<float> input;
    input.rows = kBatch;
    input.dim = kDim;
    input.embeddings = rows;
    input.labels = batch.get().labels.data();
    input.image_ids = batch.get().indices.data();
    const std::size_t first = step > 2 ? step - 2 : 0;
    std::vector<float> memory;
    for (std::size_t b = first; b < step; ++b) {
      memory.insert(memory.end(), embeddings[b].begin(), embeddings[b].end());
    }
    input.memory = static_cast<std::int64_t>(step - first) * kBatch;
    input.memory_embeddings = memory.data();
    input.memory_labels = labels.data() + first * kBatch;
    input.memory_image_ids = image_ids.data() + first * kBatch;
    LossOutput<float> output;
    std::vector<float> gradient(kBatch * kDim);
    output.grad = gradient.data();
    loss->run(context_, input, output);
    // The ring holds the columns in another order: sums differ in their last bits.
    EXPECT_NEAR(trainer.step(batch.get()).loss, output.loss, 1e-5 * output.loss) << step;
    embeddings.emplace_back(rows, rows + kBatch * kDim);
    labels.insert(labels.end(), input.labels, input.labels + kBatch);
    image_ids.insert(image_ids.end(), input.image_ids, input.image_ids + kBatch);
  }
}

class OverflowTest : public TrainerTest {
 protected:
  // Replaces each weight of these names by f(weight, position).
  void change(Trainer& trainer, const std::string& prefix, const std::string& suffix,
              const std::function<float(float, std::size_t)>& f) const {
    Parameters& parameters = trainer.parameters();
    int changed = 0;
    for (std::size_t p = 0; p < parameters.entries().size(); ++p) {
      const Parameters::Entry& entry = parameters.entries()[p];
      if (!entry.name.starts_with(prefix) || !entry.name.ends_with(suffix)) continue;
      const auto id = static_cast<ParameterId>(p);
      std::vector<float> weights(static_cast<std::size_t>(entry.elements()));
      parameters.get(parameters.values(), id, weights.data());
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = f(weights[i], i);
      parameters.set(parameters.values(), id, weights.data());
      ++changed;
    }
    EXPECT_GT(changed, 0) << prefix;
  }
  // Options of a network deep enough for values to grow.
  static TrainerOptions deep_options(BatchNormMode batchnorm) {
    TrainerOptions options = small_options("smooth_ap:tau=0.1", batchnorm);
    options.model.arch = "resnet18";
    return options;
  }
  void expect_divergence(Trainer& trainer, const std::string& what) const {
    const NoiseBatch batch(16, kSize);
    const std::vector<float> before = copy(trainer.parameters().values());
    EXPECT_THROW(trainer.step(batch.get()), DivergedError) << what;
    EXPECT_TRUE(copy(trainer.parameters().values()) == before) << what;
    EXPECT_EQ(trainer.steps(), 0) << what;
  }
};

// A maximum pool passes over most NaN, so one inside the network may be gone before the loss.
// Filters whose sums overflow both ways make NaN out of finite weights; with batch statistics the
// step must notice wherever that happens, and change nothing.
TEST_F(OverflowTest, NoNanOfAHiddenLayerGoesUnseenWithBatchStatistics) {
  for (const char* layer : {"conv1.weight", "layer1.0.conv1.weight", "layer2.0.conv2.weight",
                            "layer2.0.downsample.0.weight", "layer4.1.conv2.weight"}) {
    Trainer trainer(context_, deep_options(BatchNormMode::kBatch));
    const auto& entry = trainer.parameters().entry(id_of(trainer.parameters(), layer));
    const auto filter = static_cast<std::size_t>(entry.elements() / entry.shape[0]);
    change(trainer, layer, "", [&](float w, std::size_t i) {
      if (i >= filter) return w;
      return i % 2 == 0 ? 3e38F : -3e38F;
    });
    expect_divergence(trainer, layer);
  }
}

// With frozen statistics nothing bounds the values: too large a rate makes them grow from layer to
// layer. If all sums overflow at once, the step sees nothing, and the checkpoint must be refused.
TEST_F(OverflowTest, ValuesThatGrowAreSeenWithFrozenStatistics) {
  const std::pair<float, int> cases[] = {{1e3F, 1}, {1e6F, 2}, {1e15F, 3}, {1e30F, 4}};
  for (const auto& each : cases) {
    const float factor = each.first;
    Trainer trainer(context_, deep_options(BatchNormMode::kRunning));
    EXPECT_TRUE(trainer.sound());
    for (int stage = each.second; stage <= 4; ++stage) {
      change(trainer, fmt::format("layer{}", stage), ".weight",
             [&](float w, std::size_t) { return w * factor; });
    }
    if (factor > 1e12F) {
      EXPECT_FALSE(trainer.sound()) << factor;
    } else {
      EXPECT_TRUE(trainer.sound()) << factor;
      expect_divergence(trainer, fmt::format("{} from layer{}", factor, each.second));
    }
  }
}

// Every parameter and every statistic counts, the last ones too.
TEST_F(TrainerTest, OneValueThatCannotBeIsUnsound) {
  Trainer trainer(context_, small_options("smooth_ap:tau=0.1", BatchNormMode::kBatch));
  Parameters& parameters = trainer.parameters();
  const auto sound_with = [&](float& value, float other) {
    const float before = std::exchange(value, other);
    const bool sound = trainer.sound();
    value = before;
    return sound;
  };
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Parameters::Entry& last = parameters.entries().back();
  float& weight = parameters.values()[static_cast<std::size_t>(last.offset + last.elements() - 1)];
  EXPECT_TRUE(sound_with(weight, 0.9e12F));
  for (const float wrong : {1.1e12F, -1.1e12F, kInfinity, kNaN}) {
    EXPECT_FALSE(sound_with(weight, wrong)) << wrong;
  }
  for (std::size_t i = 0; i < parameters.buffers().size(); ++i) {
    const Parameters::BufferEntry& entry = parameters.buffers()[i];
    if (entry.counter) continue;
    float& statistic = parameters.buffer(static_cast<BufferId>(i))[entry.elements - 1];
    for (const float wrong : {kInfinity, kNaN}) {
      EXPECT_FALSE(sound_with(statistic, wrong)) << entry.name << ": " << wrong;
    }
  }
  EXPECT_TRUE(trainer.sound());
}

// Decay adds 1e20 times a parameter to its gradient, whose square float32 does not hold.
TEST_F(TrainerTest, StateOfTheOptimizerMustBeFinite) {
  const NoiseBatch batch(16, kSize);
  for (const double decay : {1.0, 1e20}) {
    TrainerOptions options = small_options("smooth_ap", BatchNormMode::kRunning);
    options.optimizer.kind = OptimizerKind::kAdam;
    options.learning.weight_decay = decay;
    Trainer trainer(context_, options);
    trainer.step(batch.get());
    EXPECT_TRUE(std::ranges::all_of(trainer.parameters().values(),
                                    [](float value) { return std::isfinite(value); }));
    EXPECT_EQ(trainer.sound(), decay == 1);
  }
}

TEST_F(TrainerTest, SaysWhereValuesStopBeingFinite) {
  const NoiseBatch batch(16, kSize);
  TrainerOptions options = small_options("smooth_ap", BatchNormMode::kRunning);
  options.chunk = 8;
  Trainer trainer(context_, options);
  trainer.step(batch.get());
  for (const LayerActivations& layer : trainer.activations()) {
    EXPECT_EQ(layer.not_finite, 0) << layer.name;
    EXPECT_GT(layer.max_abs, 0) << layer.name;
    EXPECT_EQ(layer.values % 16, 0) << layer.name;
  }
  const ParameterId id = id_of(trainer.parameters(), "layer3.0.bn2.bias");
  *trainer.parameters().value(id) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(trainer.not_finite(trainer.parameters().values()),
            std::vector<std::string>{"layer3.0.bn2.bias"});
  const auto layers = trainer.activations();
  const auto first = std::find_if(layers.begin(), layers.end(), [](const LayerActivations& layer) {
    return layer.not_finite > 0;
  });
  ASSERT_NE(first, layers.end());
  EXPECT_TRUE(holds(first->name, "layer3.0"));
  EXPECT_EQ(first->values, 16 * 4 * 4 * 64);  // of 64 channels, one is infinite
  EXPECT_EQ(first->not_finite, first->values / 64);
}

// fp16 skips updates, so that Adam has counted fewer than there were steps. A run that goes on in
// another precision must keep that count over its own saves.
TEST_F(TrainerTest, UpdatesStayCountedWhenARunLeavesFp16) {
  const TrainerOptions options = small_options("smooth_ap:tau=0.1", BatchNormMode::kRunning);
  const auto save = [&](Trainer& trainer, const LossScaleState& scale) {
    trainer.download();
    RunState run;
    run.step = trainer.steps();
    run.loss_scale = scale;
    CheckpointWriter writer(options.model, run);
    trainer.save(writer);
    return writer.finish();
  };
  const auto go_on = [&](const std::vector<std::byte>& from, int first, int steps) {
    auto trainer = std::make_unique<Trainer>(context_, options);
    trainer->load(Checkpoint("saved", from));
    for (int i = 0; i < steps; ++i) {
      trainer->step(NoiseBatch(16, kSize, static_cast<std::uint32_t>(first + i)).get());
    }
    trainer->download();
    return trainer;
  };
  Trainer begun(context_, options);
  for (std::uint32_t i = 0; i < 3; ++i) begun.step(NoiseBatch(16, kSize, i).get());
  const LossScaleState of_fp16 = {.updates = 1, .scale = 1024, .good_steps = 1};
  const std::vector<std::byte> left = save(begun, of_fp16);
  const auto straight = go_on(left, 3, 2);
  const auto half = go_on(left, 3, 1);
  EXPECT_EQ(half->loss_scale().updates, 2);
  EXPECT_EQ(half->loss_scale().scale, 1024);
  const auto resumed = go_on(save(*half, half->loss_scale()), 4, 1);
  EXPECT_EQ(copy(resumed->parameters().values()), copy(straight->parameters().values()));
  // A run that never was in fp16 has none.
  begun.download();
  EXPECT_EQ(begun.loss_scale().scale, 0);
}

// In networks with branches, tensors lie inside the joined ones.
TEST_F(TrainerTest, SaysSoOfNetworksWithBranches) {
  constexpr int kSide = 75;
  const NoiseBatch batch(4, kSide);
  for (const char* arch : {"googlenet", "inception_v3"}) {
    SCOPED_TRACE(arch);
    TrainerOptions options = small_options("smooth_ap", BatchNormMode::kBatch);
    options.model.arch = arch;
    options.model.crop = options.model.resize = kSide;
    options.batch = 4;
    options.classes = 2;
    Trainer trainer(context_, options);
    trainer.step(batch.get());
    for (const LayerActivations& layer : trainer.activations()) {
      EXPECT_EQ(layer.not_finite, 0) << layer.name;
      EXPECT_GT(layer.max_abs, 0) << layer.name;
      EXPECT_EQ(layer.values % 4, 0) << layer.name;
    }
  }
}

}  // namespace
}  // namespace rk
