#include "layers/networks/network.h"

#include "engine/base/error.h"
#include "engine/tape/layout.h"
#include "tests/support/messages.h"
#include "tests/support/node_harness.h"
#include "tests/support/parameter_id.h"
#include "tests/support/weights/torchvision.h"
#include "weights/architectures/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

namespace rk {
namespace {

class Model {
 public:
  Model(const NetworkSpec& spec, const Program::Options& options, int threads,
        std::int64_t batch = 2, std::int64_t side = 40)
      : context_(threads),
        program_(context_, parameters_, options),
        network_(build_network(program_, spec, batch, side, side)) {
    program_.plan();
    parameters_.initialise(context_, 5);
  }

  void step() {
    std::ranges::copy(noise(program_.shape(network_.input).elements(), 1),
                      program_.value(network_.input));
    program_.forward();
    program_.count_forward();
    const std::int64_t elements = program_.shape(network_.embeddings).elements();
    const float* values = program_.value(network_.embeddings);
    embeddings.assign(values, values + elements);
    if (!program_.options().gradients) return;
    std::ranges::copy(noise(elements, 2), program_.gradient(network_.embeddings));
    program_.backward();
    gradients.assign(parameters_.gradients().begin(), parameters_.gradients().end());
  }

  Program& program() { return program_; }
  Parameters& parameters() { return parameters_; }
  std::vector<float> running() {
    std::vector<float> all;
    for (std::size_t id = 0; id < parameters_.buffers().size(); ++id) {
      const Parameters::BufferEntry& entry = parameters_.buffers()[id];
      if (entry.counter) {
        all.push_back(static_cast<float>(parameters_.counter(static_cast<BufferId>(id))));
      } else {
        const float* values = parameters_.buffer(static_cast<BufferId>(id));
        all.insert(all.end(), values, values + entry.elements);
      }
    }
    return all;
  }

  std::vector<float> embeddings, gradients;

 private:
  Context context_;
  Parameters parameters_;
  Program program_;
  Network network_;
};

NetworkSpec small_spec(const std::string& arch, BatchNormMode mode = BatchNormMode::kBatch) {
  NetworkSpec spec;
  spec.arch = arch;
  spec.dim = 16;
  spec.batchnorm = mode;
  return spec;
}

// The side of the smallest images that show a network's odd sizes.
std::int64_t small_side(const std::string& arch) { return arch == "inception_v3" ? 83 : 40; }

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

// Parameters and running statistics must have the names and shapes of torchvision's state_dict,
// without `fc` and with the embedding layer.
TEST(Networks, CarryTorchvisionsNamesAndShapes) {
  // torchvision's numbers of parameters, without auxiliary classifiers. ResNet-20's is for a
  // classifier of 1,000 classes; the well-known 272,474 is for 10.
  const std::map<std::string, std::int64_t> counts = {{"resnet20", 272474 + 990 * 65},
                                                      {"resnet18", 11689512},
                                                      {"resnet50", 25557032},
                                                      {"googlenet", 6624904},
                                                      {"inception_v3", 23834568}};
  for (const std::string& arch : network_names()) {
    SCOPED_TRACE(arch);
    const Context context(1);
    Parameters parameters;
    Program program(context, parameters, {});
    NetworkSpec spec = small_spec(arch);
    spec.dim = 512;
    build_network(program, spec, 1, 96, 96);

    std::map<std::string, std::vector<std::int64_t>> ours, theirs;
    for (const Parameters::Entry& entry : parameters.entries()) {
      std::vector<std::int64_t> dims;
      for (int axis = 0; axis < entry.shape.rank(); ++axis) dims.push_back(entry.shape[axis]);
      ours[entry.name] = dims;
      EXPECT_EQ(entry.group == ParameterGroup::kEmbedding, entry.name.starts_with("embedding."));
    }
    for (const Parameters::BufferEntry& entry : parameters.buffers()) {
      ours[entry.name] =
          entry.counter ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{entry.elements};
    }
    std::int64_t backbone = 0, features = 0;
    for (const golden::NamedShape& entry : golden::torchvision_network(arch)) {
      if (entry.name == "fc.weight") features = entry.dims[1];
      if (entry.name.starts_with("fc.")) continue;
      theirs[entry.name] = entry.dims;
      std::int64_t elements = 1;
      for (std::int64_t d : entry.dims) elements *= d;
      const bool learned = entry.name.ends_with("weight") || entry.name.ends_with("bias");
      if (learned) backbone += elements;
    }
    theirs["embedding.weight"] = {512, features};
    theirs["embedding.bias"] = {512};
    EXPECT_EQ(ours, theirs);
    EXPECT_EQ(backbone, counts.at(arch) - 1000 * (features + 1));  // the classifier
    EXPECT_EQ(parameters.parameter_count(), backbone + 512 * (features + 1));
  }
}

// Each network must be compared with torchvision's, which has of ResNet-20 only the blocks.
TEST(Networks, HaveGoldenValues) {
  for (const std::string& arch : network_names()) {
    const std::string file = RK_TEST_GOLDEN "/networks/" + arch + ".h5";
    EXPECT_EQ(std::filesystem::exists(file), arch != "resnet20") << file;
  }
}

TEST(Networks, TakeImagesFromTheirLeastSizeOn) {
  const auto record = [](const std::string& arch, std::int64_t side) {
    const Context context(1);
    Parameters parameters;
    Program program(context, parameters, {});
    build_network(program, small_spec(arch), 1, side, side);
  };
  for (const std::string& arch : network_names()) {
    const std::int64_t least = least_image_size(arch);
    for (std::int64_t side = least; side < least + 10; ++side) {
      EXPECT_NO_THROW(record(arch, side)) << arch << ' ' << side;
    }
    if (least == 1) continue;
    EXPECT_THROW(record(arch, least - 1), std::invalid_argument) << arch;
  }
  EXPECT_EQ(least_image_size("inception_v3"), 75);  // as torchvision's
}

// No plan takes less than the most bytes alive at one time (engine/tape/arena.h).
TEST(Networks, TensorsTakeFewMoreBytesThanAreAliveAtOneTime) {
  for (const std::string& arch : network_names()) {
    for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
      const Context context(1);
      Parameters parameters;
      Program program(context, parameters, {.gradients = true});
      build_network(program, small_spec(arch, mode), 2, 96, 96);
      program.lay_out();
      StoragePlan plan(program.tape(), /*gradients=*/true, /*keep_all=*/false);
      plan.place();
      std::size_t most = 0;
      for (int time = 0; time <= plan.end(); ++time) {
        std::size_t alive = 0;
        for (const Lifetime& life : plan.lifetimes()) {
          if (life.first <= time && time <= life.last) alive += life.bytes;
        }
        most = std::max(most, alive);
      }
      EXPECT_GE(plan.bytes(), most) << arch;
      EXPECT_LE(plan.bytes(), most + most / 50) << arch;
    }
  }
}

// Profilers' filters take these characters for something else (engine/driver/profile.h).
TEST(Networks, NodesHaveNamesThatProfilersFind) {
  for (const std::string& arch : network_names()) {
    for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
      for (const bool for_gpu : {false, true}) {
        const Context context(1);
        Parameters parameters;
        Program program(context, parameters, {.gradients = true, .for_gpu = for_gpu});
        build_network(program, small_spec(arch, mode), 2, 96, 96);
        program.lay_out();
        for (const auto& node : program.nodes()) {
          EXPECT_EQ(node->name().find_first_of("\":/@[]*+,"), std::string::npos) << node->name();
          EXPECT_NE(node->kind(), "");
        }
      }
    }
  }
}

TEST(Networks, SharedMemoryChangesNoBit) {
  for (const std::string& arch : network_names()) {
    const std::int64_t side = small_side(arch);
    for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
      Model shared(small_spec(arch, mode), {.gradients = true}, 1, 2, side);
      Model kept(small_spec(arch, mode), {.gradients = true, .keep_all = true}, 1, 2, side);
      shared.step();
      kept.step();
      EXPECT_EQ(shared.embeddings, kept.embeddings) << arch;
      EXPECT_EQ(shared.gradients, kept.gradients) << arch;
      EXPECT_EQ(shared.running(), kept.running()) << arch;
      EXPECT_LT(shared.program().footprint().arena_bytes, kept.program().footprint().arena_bytes);
    }
  }
}

// A parameter is in the stage whose list has a beginning of its name: in one stage, or in none if
// it belongs to the embedding.
TEST(Networks, EveryParameterOfTheBackboneIsInOneStage) {
  for (const std::string& arch : network_names()) {
    const Context context(1);
    Parameters parameters;
    Program program(context, parameters, {});
    build_network(program, small_spec(arch), 1, 96, 96);
    for (const Parameters::Entry& entry : parameters.entries()) {
      int stages = 0;
      for (const Stage& stage : network_stages(arch)) {
        stages += std::ranges::any_of(stage.beginnings, [&](const std::string& beginning) {
          return entry.name.starts_with(beginning);
        });
      }
      EXPECT_EQ(stages, entry.group == ParameterGroup::kBackbone ? 1 : 0) << entry.name;
    }
  }
}

// The same step again gives the same bits: a program hides no state beside parameters and running
// statistics.
TEST(ResNet, AStepRepeatsItself) {
  Model model(small_spec("resnet18"), {.gradients = true}, 2);
  model.step();
  const std::vector<float> embeddings = model.embeddings, gradients = model.gradients;
  const std::vector<float> running = model.running();
  model.parameters().initialise(Context(1), 5);
  model.step();
  EXPECT_EQ(model.embeddings, embeddings);
  EXPECT_EQ(model.gradients, gradients);
  EXPECT_EQ(model.running(), running);
}

// He et al. 2015, for the gradient's sake: variance 2 / fan-out; normalisations begin as the
// identity.
TEST(ResNet, StartsFromKaimingsNormal) {
  Model model(small_spec("resnet18"), {.gradients = true}, 2);
  const Parameters& parameters = model.parameters();
  int convolutions = 0, normalisations = 0;
  for (std::size_t i = 0; i < parameters.entries().size(); ++i) {
    const Parameters::Entry& entry = parameters.entries()[i];
    const float* values = parameters.value(static_cast<ParameterId>(i));
    const std::int64_t count = entry.elements();
    if (entry.shape.rank() == 4) {
      ++convolutions;
      double sum = 0, squares = 0;
      for (std::int64_t j = 0; j < count; ++j) {
        const auto value = static_cast<double>(values[j]);
        sum += value;
        squares += value * value;
      }
      const auto n = static_cast<double>(count);
      const double deviation =
          std::sqrt(2.0 / static_cast<double>(entry.shape[0] * entry.shape[2] * entry.shape[3]));
      // Six standard errors: some twenty tensors are drawn.
      EXPECT_NEAR(std::sqrt(squares / n), deviation, deviation * 6 / std::sqrt(2 * n))
          << entry.name;
      EXPECT_NEAR(sum / n, 0, deviation * 6 / std::sqrt(n)) << entry.name;
    } else if (entry.name.find("bn") != std::string::npos) {
      ++normalisations;
      const float all = entry.name.ends_with(".weight") ? 1.0F : 0.0F;
      EXPECT_TRUE(std::all_of(values, values + count, [&](float value) { return value == all; }))
          << entry.name;
    }
  }
  EXPECT_EQ(convolutions, 20);
  EXPECT_GE(normalisations, 34);
}

TEST(Networks, FrozenRunningStatisticsStayBitEqual) {
  for (const std::string& arch : network_names()) {
    Model model(small_spec(arch, BatchNormMode::kRunning), {.gradients = true}, 2, 2,
                small_side(arch));
    const std::vector<float> before = model.running();
    model.step();
    EXPECT_EQ(model.running(), before);
    for (float g : model.gradients) ASSERT_TRUE(std::isfinite(g));
  }
}

TEST(ResNet, AgreesForAnyNumberOfThreads) {
  Model one(small_spec("resnet18", BatchNormMode::kRunning), {.gradients = true}, 1);
  Model two(small_spec("resnet18", BatchNormMode::kRunning), {.gradients = true}, 2);
  one.step();
  two.step();
  // Rounding only, but one ReLU that flips changes a gradient by some tenths of a percent.
  EXPECT_LT(relative_difference(two.embeddings, one.embeddings), 1e-5);
  EXPECT_LT(relative_difference(two.gradients, one.gradients), 1e-2);
}

// The original paper and Keras stride in the first 1x1 of a bottleneck, torchvision in its 3x3.
TEST(ResNet, StridesWhereItIsTold) {
  for (const bool first : {false, true}) {
    NetworkSpec spec = small_spec("resnet50");
    spec.stride_in_1x1 = first;
    const Context context(1);
    Parameters parameters;
    Program program(context, parameters, {});
    build_network(program, spec, 1, 64, 64);
    const auto side = [&](const std::string& name) {
      const TensorId id = program.find(name);
      EXPECT_GE(id, 0) << name;
      return program.shape(id)[1];
    };
    EXPECT_EQ(side("layer1.2"), 16);
    EXPECT_EQ(side("layer2.0.relu1"), first ? 8 : 16);
    EXPECT_EQ(side("layer2.0.relu2"), 8);
    EXPECT_EQ(side("layer4.2"), 2);
  }
}

TEST(ResNet, EmbeddingsHaveUnitLength) {
  Model model(small_spec("resnet18", BatchNormMode::kRunning), {}, 2, 3, 33);
  model.step();
  for (std::size_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (std::size_t d = 0; d < 16; ++d) squares += std::pow(model.embeddings[row * 16 + d], 2.0);
    EXPECT_NEAR(squares, 1.0, 1e-6);
  }
}

TEST(ResNet, OrthogonalEmbeddingIsOrthogonal) {
  NetworkSpec spec = small_spec("resnet18");
  spec.orthogonal_embedding = true;
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  build_network(program, spec, 1, 32, 32);
  parameters.initialise(context, 9);
  const float* w = parameters.value(id_of(parameters, "embedding.weight"));
  for (std::int64_t i = 0; i < spec.dim; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (std::int64_t k = 0; k < 512; ++k) {
        dot += static_cast<double>(w[i * 512 + k]) * static_cast<double>(w[j * 512 + k]);
      }
      EXPECT_NEAR(dot, i == j ? 1.0 : 0.0, 1e-6);  // 512 elements of float32's rounding
    }
  }
}

TEST(ResNet, AnUnknownNetworkIsNamedWithItsNearest) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  try {
    build_network(program, small_spec("resnet5"), 1, 64, 64);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_TRUE(holds(std::string(error.what()), "resnet50")) << error.what();
  }
}

}  // namespace
}  // namespace rk
