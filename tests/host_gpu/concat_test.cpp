// Convolutions and poolings that write into the joined tensor, and read their gradients there,
// against the same ones with tensors of their own: bit-equal, because the emulated GPU computes
// both alike.
#include "layers/concat.h"

#include "layers/conv_bn.h"
#include "layers/pool.h"
#include "tests/host_gpu/cudnn/engines.h"
#include "tests/support/node_harness.h"
#include "tests/support/program_tensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rk {
namespace {

// Two convolutions and two poolings of one image, joined; if `shared`, the poolings read the second
// convolution instead.
class Branches {
 public:
  Branches(const Context& gpu, Precision precision, std::int64_t channels, bool keep_all,
           bool shared)
      : program_(gpu, parameters_,
                 {.gradients = true, .keep_all = keep_all, .precision = precision}) {
    const TensorId images = program_.input("images", {2, 5, 4, 8}, 8, image_type(precision));
    const TensorId x = unit(images, "x", 16);
    first_ = unit(x, "first", channels);
    second_ = unit(x, "second", 16);
    const PoolOptions windows{{3, 3}, {1, 1}, {1, 1}, false};
    average_ = average_pool(program_, shared ? second_ : x, "average", windows);
    largest_ = max_pool(program_, shared ? second_ : x, "largest", windows);
    joined_ = concat(program_, {first_, average_, second_, largest_}, "joined");
    program_.set_output(global_pool(program_, joined_, "features", {}));
    program_.plan();
    parameters_.initialise(gpu, 3);
    fill(images, program_.value_of(images), 1);
    program_.forward();
    const TensorId features = program_.find("features");
    output = program_.read(features);
    for (const TensorId id : {first_, second_, average_, largest_})
      read.push_back(program_.read(id));
    fill(features, program_.gradient_of(features), 2);
    program_.backward();
    parameters_.download_gradients();
    gradients.assign(parameters_.gradients().begin(), parameters_.gradients().end());
  }

  // Whether that tensor and its gradient lie inside the joined ones.
  bool lies_in(TensorId id) const {
    const auto within = [](const Tensor& part, const Tensor& whole) {
      const auto* begin = static_cast<const std::byte*>(whole.data);
      const auto* data = static_cast<const std::byte*>(part.data);
      return data >= begin && data < begin + whole.bytes() && part.row_stride == whole.row_stride;
    };
    return within(program_.value_of(id), program_.value_of(joined_)) &&
           within(program_.gradient_of(id), program_.gradient_of(joined_));
  }
  bool first_lies_in() const { return lies_in(first_); }
  bool second_lies_in() const { return lies_in(second_); }
  bool poolings_lie_in() const { return lies_in(average_) && lies_in(largest_); }

  std::vector<float> output, gradients;
  std::vector<std::vector<float>> read;  // values of the four joined tensors

 private:
  TensorId unit(TensorId x, const std::string& name, std::int64_t channels) {
    return conv_bn(program_, x, {name + ".conv", name + ".bn", name},
                   {channels, {3, 3}, {1, 1}, {1, 1}},
                   {.mode = BatchNormMode::kRunning, .relu = true});
  }
  void fill(TensorId id, const Tensor& to, std::uint64_t seed) const {
    write(program_, id, to, noise(to.elements(), seed));
  }

  Parameters parameters_;
  Program program_;
  TensorId first_ = -1, second_ = -1, average_ = -1, largest_ = -1, joined_ = -1;
};

TEST(HostGpuConcat, ProducersWriteWhereTheyAreJoinedAndChangeNoBit) {
  const Context gpu(1, Device{.cuda = true});
  for (const bool fused : {true, false}) {
    // Unfused, our own kernel adds bias and ReLU.
    if (!fused) host_gpu::refuse_graphs([](const Graph& g) { return g.has(Graph::Op::kBias); });
    for (const Precision precision : kPrecisions) {
      for (const bool shared : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, fused {}, shared {}", name_of(precision), fused, shared));
        const Branches joined(gpu, precision, 24, /*keep_all=*/false, shared);
        const Branches apart(gpu, precision, 24, /*keep_all=*/true, shared);
        const bool writes_apart = precision != Precision::kBf16;
        EXPECT_EQ(joined.first_lies_in(), writes_apart);
        EXPECT_EQ(joined.second_lies_in(), writes_apart && !shared);
        EXPECT_TRUE(joined.poolings_lie_in());
        EXPECT_FALSE(apart.first_lies_in());
        EXPECT_FALSE(apart.poolings_lie_in());
        EXPECT_EQ(joined.output, apart.output);
        EXPECT_EQ(joined.read, apart.read);
        EXPECT_EQ(joined.gradients, apart.gradients);
      }
    }
  }
  host_gpu::refuse_graphs(nullptr);
}

// A range that starts within a pack, which a thread moves at once, is copied.
TEST(HostGpuConcat, WhatWouldStartBetweenPacksStaysApart) {
  const Context gpu(1, Device{.cuda = true});
  EXPECT_FALSE(Branches(gpu, Precision::kFp16, 12, false, false).second_lies_in());
  EXPECT_TRUE(Branches(gpu, Precision::kFp32, 12, false, false).second_lies_in());
}

}  // namespace
}  // namespace rk
