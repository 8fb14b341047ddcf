#include "training/model_io.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "tests/support/messages.h"
#include "tests/support/parameter_id.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/file.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rk {
namespace {

std::vector<std::byte> bytes_of(const Trainer& trainer, const ModelDescription& model) {
  RunState run;
  run.step = trainer.steps();
  CheckpointWriter writer(model, run);
  trainer.save(writer);
  return writer.finish();
}

class ModelIo : public testing::Test {
 protected:
  std::string save(const Trainer& trainer, const ModelDescription& model) {
    std::string path = folder_.in("state.h5");
    write_atomic(path, bytes_of(trainer, model));
    return path;
  }
  const Context context_{2};
  const TemporaryFolder folder_;
};

TEST_F(ModelIo, ATrainerThatIsLoadedIsTheOneThatWasSaved) {
  const NoiseBatch batch(8, 16);
  TrainerOptions options = small_trainer("smooth_ap", 8);
  Trainer first(context_, options);
  first.step(batch.get());
  first.step(batch.get());
  const std::string path = save(first, options.model);
  options.seed = 99;
  Trainer second(context_, options);
  EXPECT_NE(bytes_of(first, options.model), bytes_of(second, options.model));
  second.load(Checkpoint(path));
  EXPECT_EQ(second.steps(), 2);
  EXPECT_EQ(bytes_of(first, options.model), bytes_of(second, options.model));
  // It also continues alike, optimizer, running statistics and all.
  EXPECT_EQ(first.step(batch.get()).loss, second.step(batch.get()).loss);
  EXPECT_EQ(bytes_of(first, options.model), bytes_of(second, options.model));
}

// If accepted, it would look like training that diverges, with this file as the last good
// checkpoint.
TEST_F(ModelIo, AnOptimizersStateThatCannotBeIsRefused) {
  const NoiseBatch batch(8, 16);
  const TrainerOptions options = small_trainer("smooth_ap", 8);
  for (const auto& [state, value] :
       {std::pair{0, std::nanf("")}, std::pair{1, INFINITY}, std::pair{1, -1e-3F}}) {
    Trainer first(context_, options);
    first.step(batch.get());
    first.train_step().optimizer().states()[at(state)].values[3] = value;
    const std::string path = save(first, options.model);
    Trainer second(context_, options);
    EXPECT_TRUE(holds(message_of<InputError>([&] { second.load(Checkpoint(path)); }),
                      "state.h5: the optimizer's exp_avg"));
  }
}

// Proxies, the memory's columns and all their state are part of a checkpoint.
TEST_F(ModelIo, WhatALossKeepsIsSavedToo) {
  const NoiseBatch a(8, 16, 0), b(8, 16, 1), c(8, 16, 2);
  for (const bool proxies : {true, false}) {
    TrainerOptions options = small_trainer("smooth_ap", 8);
    options.loss = parse_loss(proxies ? "nsl" : "fastap");
    options.classes = 5;
    options.memory_batches = proxies ? 0 : 2;
    options.chunk = 4;
    Trainer first(context_, options);
    for (const NoiseBatch* batch : {&a, &b, &c}) first.step(batch->get());
    const std::string path = save(first, options.model);
    options.seed = 99;
    Trainer second(context_, options);
    EXPECT_TRUE(second.load(Checkpoint(path)));
    EXPECT_EQ(bytes_of(first, options.model), bytes_of(second, options.model));
    EXPECT_EQ(first.step(a.get()).loss, second.step(a.get()).loss);
    EXPECT_EQ(bytes_of(first, options.model), bytes_of(second, options.model));
    const Hdf5Reader file(path);
    if (proxies) {
      EXPECT_EQ(file.info("/loss/proxies").dims, (std::vector<std::int64_t>{5, 8}));
      EXPECT_EQ(file.info("/optimizer/exp_avg/proxies").dims, (std::vector<std::int64_t>{5, 8}));
    } else {
      EXPECT_EQ(file.info("/memory/embeddings").dims, (std::vector<std::int64_t>{16, 8}));
    }
    EXPECT_FALSE(file.has("/weights/proxies"));
    // `eval` builds the network alone: it must accept the same file.
    Parameters network;
    Program program(context_, network, {});
    program.set_output(
        build_network(program, network_spec(options.model, BatchNormMode::kRunning), 1, 32, 32)
            .embeddings);
    network.allocate(Context(1));
    EXPECT_NO_THROW(load_parameters(Checkpoint(path), network));
  }
}

TEST_F(ModelIo, ProxiesOfOtherClassesAreRefused) {
  TrainerOptions options = small_trainer("smooth_ap", 8);
  options.loss = parse_loss("proxy_anchor");
  options.classes = 5;
  const std::string with_five = save(Trainer(context_, options), options.model);
  options.classes = 6;
  Trainer six(context_, options);
  EXPECT_TRUE(holds(message_of<InputError>([&] { six.load(Checkpoint(with_five)); }),
                    "state.h5: its proxies are [5, 8], [6, 8] are expected"));
  options.loss = parse_loss("fastap");
  const std::string without = save(Trainer(context_, options), options.model);
  EXPECT_TRUE(holds(message_of<InputError>([&] { six.load(Checkpoint(without)); }),
                    "was trained without the loss's proxies [6, 8]"));
  // As a starting point, only the network counts.
  EXPECT_TRUE(load_starting_point(Checkpoint(with_five), six.parameters()));
}

TEST_F(ModelIo, FilesHoldTorchvisionsNamesAndOrder) {
  TrainerOptions options = small_trainer("smooth_ap", 8);
  options.model.arch = "resnet18";
  Trainer trainer(context_, options);
  const Hdf5Reader file(save(trainer, options.model));
  EXPECT_EQ(file.info("/weights/layer2.0.downsample.0.weight").dims,
            (std::vector<std::int64_t>{128, 64, 1, 1}));
  EXPECT_EQ(file.info("/weights/bn1.num_batches_tracked").kind, Hdf5Reader::Kind::kInteger);
  EXPECT_EQ(file.info("/weights/embedding.weight").dims, (std::vector<std::int64_t>{8, 512}));
  EXPECT_EQ(file.info("/optimizer/exp_avg/layer1.0.conv1.weight").dims,
            (std::vector<std::int64_t>{64, 64, 3, 3}));
  // ResNet-18 of torchvision has 122 entries; its fc.weight and fc.bias are our embedding layer.
  EXPECT_EQ(file.datasets("/weights").size(), 122U);
  // The file holds weights as OIHW, in whatever order they are stored in memory.
  const auto& parameters = trainer.parameters();
  const ParameterId id = id_of(parameters, "layer1.0.conv1.weight");
  std::vector<float> canonical(static_cast<std::size_t>(parameters.entry(id).elements()));
  parameters.get(parameters.values(), id, canonical.data());
  EXPECT_EQ(file.read<float>("/weights/layer1.0.conv1.weight"), canonical);
}

TEST_F(ModelIo, AStartingPointMayHaveAnotherEmbeddingLayer) {
  TrainerOptions options = small_trainer("smooth_ap", 8);
  Trainer first(context_, options);
  const Checkpoint checkpoint(save(first, options.model));
  options.seed = 99;
  options.model.dim = 16;
  Trainer second(context_, options);
  EXPECT_FALSE(load_starting_point(checkpoint, second.parameters()));
  EXPECT_TRUE(std::equal(first.parameters().values().begin(),
                         first.parameters().values().begin() + 16 * 3 * 9,
                         second.parameters().values().begin()));
  EXPECT_THROW(load_parameters(checkpoint, second.parameters()), InputError);
}

TEST_F(ModelIo, AnotherArchitectureIsRefusedWithItsTensors) {
  TrainerOptions options = small_trainer("smooth_ap", 8);
  Trainer small(context_, options);
  const std::string path = save(small, options.model);
  options.model.arch = "resnet50";
  Parameters parameters;
  Program program(context_, parameters, {});
  program.set_output(
      build_network(program, network_spec(options.model, BatchNormMode::kRunning), 1, 32, 32)
          .embeddings);
  parameters.allocate(Context(1));
  const std::string message =
      message_of<InputError>([&] { load_starting_point(Checkpoint(path), parameters); });
  EXPECT_TRUE(holds(message, "state.h5: its tensors (resnet20) are not those of this network"));
  EXPECT_TRUE(holds(message, "layer1.0.conv3.weight"));
  EXPECT_TRUE(
      holds(message, "layer1.0.conv1.weight [16, 16, 3, 3] where [64, 64, 1, 1] is expected"));
}

TEST_F(ModelIo, TrainingThatDivergesChangesNothing) {
  const NoiseBatch batch(8, 16);
  TrainerOptions options = small_trainer("smooth_ap", 8);
  Trainer trainer(context_, options);
  trainer.step(batch.get());
  const std::vector<std::byte> before = bytes_of(trainer, options.model);
  const auto values = trainer.parameters().values();
  const std::vector<float> learnt(values.begin(), values.end());
  // An infinite bias: the embeddings are not finite.
  float* bias = trainer.parameters().value(id_of(trainer.parameters(), "embedding.bias"));
  const float kept = *bias;
  *bias = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(trainer.sound());
  EXPECT_TRUE(holds(message_of<DivergedError>([&] { trainer.step(batch.get()); }), "in step 2"));
  *bias = kept;
  EXPECT_TRUE(trainer.sound());
  EXPECT_EQ(trainer.steps(), 1);
  EXPECT_TRUE(std::ranges::equal(learnt, trainer.parameters().values()));
  // The forward pass has moved the running statistics, but not the optimizer's state.
  const std::vector<std::byte> after = bytes_of(trainer, options.model);
  const Hdf5Reader former(before, "before"), now(after, "after");
  const std::vector<std::string> states = former.datasets("/optimizer/");
  EXPECT_FALSE(states.empty());
  EXPECT_EQ(now.datasets("/optimizer/"), states);
  for (const std::string& name : states) {
    EXPECT_EQ(now.read<float>(name), former.read<float>(name)) << name;
  }
}

}  // namespace
}  // namespace rk
