// Backward node by node, as several GPUs share gradients bucket by bucket, against one pass.
#include "engine/base/integers.h"
#include "kernels/half_element.h"
#include "layers/networks/network.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace rk {
namespace {

class GradientsInParts : public ::testing::TestWithParam<std::tuple<Precision, BatchNormMode>> {
 protected:
  GradientsInParts() {
    NetworkSpec network;
    network.arch = "resnet20";
    network.batchnorm = std::get<1>(GetParam());
    const Network built = build_network(program_, network, 2, 16, 16);
    images_ = built.input;
    embeddings_ = built.embeddings;
    program_.plan();
    parameters_.initialise(gpu_, 3);
  }

  // Writes directly, in the tensor's type: the emulated GPU's memory is the host's.
  void draw(const Tensor& tensor, std::uint32_t seed) {
    gpu_.synchronize();
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    with_type(tensor.dtype, [&]<class T>() {
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        tensor.as<T>()[i] = Element<T>::narrow(normal(random));
      }
    });
  }

  void begin() {
    draw(program_.value_of(images_), 1);
    program_.forward();
    draw(program_.gradient_of(embeddings_), 2);
    gpu_.synchronize();
    std::fill_n(parameters_.device_gradients(), parameters_.flat_elements(),
                std::numeric_limits<float>::quiet_NaN());
  }

  std::vector<float> gradients() {
    gpu_.synchronize();
    const float* first = parameters_.device_gradients();
    return {first, first + parameters_.flat_elements()};
  }

  Context gpu_{1, Device{.cuda = true}};
  Parameters parameters_;
  Program program_{gpu_, parameters_, {.gradients = true, .precision = std::get<0>(GetParam())}};
  TensorId images_ = -1, embeddings_ = -1;
};

TEST_P(GradientsInParts, AreThoseOfOnePass) {
  begin();
  program_.backward();
  const std::vector<float> expected = gradients();
  for (const Parameters::Entry& entry : parameters_.entries()) {
    for (std::int64_t i = entry.offset; i < entry.offset + entry.elements(); ++i) {
      ASSERT_FALSE(std::isnan(expected[at(i)])) << entry.name;
    }
  }
  std::mt19937_64 random(random_seed());
  for (int draw = 0; draw < 10; ++draw) {
    begin();
    const int count = static_cast<int>(program_.nodes().size());
    int complete = count;
    for (int node = count - 1; node >= 0; --node) {
      program_.backward(node);
      if (node > 0 && random() % 8 != 0) continue;
      program_.complete_gradients(node, complete);
      complete = node;
      const std::vector<float> so_far = gradients();
      for (auto i = static_cast<std::size_t>(program_.parameters_begin(node)); i < so_far.size();
           ++i) {
        ASSERT_EQ(std::isnan(so_far[i]), std::isnan(expected[i])) << i << " after node " << node;
        if (std::isnan(expected[i])) continue;
        ASSERT_EQ(so_far[i], expected[i]) << i << " after node " << node;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradientsInParts,
                         ::testing::Combine(::testing::Values(Precision::kFp32, Precision::kFp16),
                                            ::testing::Values(BatchNormMode::kBatch,
                                                              BatchNormMode::kRunning)));

}  // namespace
}  // namespace rk
