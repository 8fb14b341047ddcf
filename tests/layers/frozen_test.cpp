// A network whose first layers are frozen: everything else gets the same gradients, bit for bit,
// and gradients that nobody needs are not computed.
#include "layers/networks/network.h"
#include "tests/support/goldens/golden_generator.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace rk {
namespace {

using golden::Generator;

struct Trained {
  std::vector<std::vector<float>> gradients;  // by parameter
  std::vector<float> embeddings, statistics;
  std::size_t arena = 0;
};

Trained step(const Context& context, const NetworkSpec& spec, const Generator& generator,
             const std::vector<std::string>& frozen, std::vector<std::string>& names) {
  constexpr std::int64_t kBatch = 2, kSide = 32;
  Parameters parameters;
  parameters.freeze(frozen);
  Program program(context, parameters, {.gradients = true});
  const Network network = build_network(program, spec, kBatch, kSide, kSide);
  program.plan();
  parameters.initialise(context, golden::key_seed(generator.salt));
  const std::vector<float> images = generator.images("frozen", kBatch, kSide, kSide);
  std::ranges::copy(images, program.value(network.input));
  program.forward();
  Trained out;
  const float* embeddings = program.value(network.embeddings);
  out.embeddings.assign(embeddings, embeddings + kBatch * spec.dim);
  const std::vector<float> cotangent = generator.cotangent("frozen", kBatch, spec.dim);
  std::ranges::copy(cotangent, program.gradient(network.embeddings));
  program.backward();
  for (std::size_t id = 0; id < parameters.entries().size(); ++id) {
    const Parameters::Entry& entry = parameters.entries()[id];
    names.push_back(entry.name);
    const float* values = parameters.gradient(static_cast<ParameterId>(id));
    out.gradients.emplace_back(values, values + entry.elements());
  }
  const auto statistics = parameters.statistics();
  out.statistics.assign(statistics.begin(), statistics.end());
  out.arena = program.footprint().arena_bytes;
  return out;
}

TEST(Frozen, WhatLearnsLearnsTheSame) {
  const Context context(1);
  const std::uint64_t seed = random_seed();
  const Generator generator{.salt = std::to_string(seed)};
  std::vector<std::string> frozen;
  std::uint64_t combination = 0;
  for (const char* arch : {"resnet20", "resnet50"}) {
    for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
      for (const bool fuse : {true, false}) {
        // ResNet-50 takes seconds: each run tests one of its four combinations, chosen by the seed.
        if (std::string_view(arch) == "resnet50" && combination++ % 4 != seed % 4) continue;
        SCOPED_TRACE(testing::Message()
                     << arch << (fuse ? " fused" : "") << static_cast<int>(mode));
        NetworkSpec spec;
        spec.arch = arch;
        spec.dim = 16;
        spec.batchnorm = mode;
        spec.fuse = fuse;
        std::vector<std::string> names;
        const Trained whole = step(context, spec, generator, {}, names);
        frozen = {"conv1.", "bn1."};
        for (const char* stage : {"layer1.", "layer3.", ""}) {
          SCOPED_TRACE(testing::Message() << "before " << stage);
          std::vector<std::string> ignored;
          const Trained part = step(context, spec, generator, frozen, ignored);
          EXPECT_EQ(part.embeddings, whole.embeddings);
          EXPECT_EQ(part.statistics, whole.statistics);
          EXPECT_LE(part.arena, whole.arena);
          for (std::size_t i = 0; i < names.size(); ++i) {
            const bool stays = std::ranges::any_of(
                frozen, [&](const std::string& front) { return names[i].starts_with(front); });
            if (!stays) {
              EXPECT_EQ(part.gradients[i], whole.gradients[i]) << names[i];
            } else {
              EXPECT_TRUE(std::ranges::all_of(part.gradients[i], [](float g) { return g == 0; }))
                  << names[i] << ": was computed though nobody needs it";
            }
          }
          if (*stage == '\0') break;
          frozen.emplace_back(stage);
          frozen.emplace_back(*stage == 'l' && stage[5] == '1' ? "layer2." : "layer4.");
        }
      }
    }
  }
}

}  // namespace
}  // namespace rk
