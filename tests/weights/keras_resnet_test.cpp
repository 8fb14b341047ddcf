// Keras's ResNet-50 of every generation of names, made here by layer and place, against the exact
// algebra written out.
#include "weights/foreign/resnet_weights.h"

#include "engine/random.h"
#include "tests/data/temporary_folder.h"
#include "tests/support/random_seed.h"
#include "weights/hdf5_file.h"

#include <map>

namespace rk {
namespace {

constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};

enum class Generation { kFirst, kSecond, kThirdNamed, kThirdCounted };

// A convolution with its normalisation: where it is in Keras, and what it is called by torchvision.
struct Layer {
  int stage = 1, block = 0, number = 1;  // number 0: the shortcut; stage 1: the stem
  std::string convolution, normalisation;
  std::int64_t in = 3, out = 64, side = 7;
};

// In the order of Keras's model.layers.
std::vector<Layer> layers() {
  std::vector<Layer> all = {{1, 0, 1, "conv1", "bn1", 3, 64, 7}};
  std::int64_t in = 64;
  for (int stage = 2; stage <= 5; ++stage) {
    const std::int64_t width = std::int64_t{16} << stage;
    for (int block = 0; block < kBlocks[static_cast<std::size_t>(stage - 2)]; ++block) {
      const std::string front = fmt::format("layer{}.{}.", stage - 1, block);
      all.push_back({stage, block, 1, front + "conv1", front + "bn1", in, width, 1});
      all.push_back({stage, block, 2, front + "conv2", front + "bn2", width, width, 3});
      if (block == 0) {
        all.push_back(
            {stage, block, 0, front + "downsample.0", front + "downsample.1", in, 4 * width, 1});
      }
      all.push_back({stage, block, 3, front + "conv3", front + "bn3", width, 4 * width, 1});
      in = 4 * width;
    }
  }
  return all;
}

std::string keras_name(const Layer& layer, Generation generation, bool norm) {
  if (generation == Generation::kFirst) {
    if (layer.stage == 1) return norm ? "bn_conv1" : "conv1";
    const std::string branch =
        layer.number == 0 ? "1" : fmt::format("2{}", static_cast<char>('a' + layer.number - 1));
    return fmt::format("{}{}{}_branch{}", norm ? "bn" : "res", layer.stage,
                       static_cast<char>('a' + layer.block), branch);
  }
  if (layer.stage == 1) return norm ? "conv1_bn" : "conv1_conv";
  return fmt::format("conv{}_block{}_{}_{}", layer.stage, layer.block + 1, layer.number,
                     norm ? "bn" : "conv");
}

using Values = std::map<std::string, std::vector<float>>;

class KerasFile {
 public:
  KerasFile(Generation generation, CounterRandom& random)
      : generation_(generation), random_(random) {}

  std::vector<std::byte> write() {
    int place = 0;
    for (const Layer& layer : layers()) {
      add(layer, place, false,
          {{"kernel", {layer.side, layer.side, layer.in, layer.out}}, {"bias", {layer.out}}});
      add(layer, place, true,
          {{"gamma", {layer.out}},
           {"beta", {layer.out}},
           {"mean", {layer.out}},
           {"variance", {layer.out}}});
      ++place;
    }
    writer_.set_attribute(root_.empty() ? "/" : root_, "backend", "tensorflow");
    return writer_.finish();
  }
  // By "<torchvision's layer>/<part>".
  const Values& values() const { return values_; }

 private:
  using Part = std::pair<const char*, std::vector<std::int64_t>>;

  std::string path(const Layer& layer, int place, bool norm, const std::string& part,
                   int number) const {
    const std::string name = keras_name(layer, generation_, norm);
    if (generation_ == Generation::kFirst) {
      const std::string leaf = part == "kernel"     ? "W"
                               : part == "bias"     ? "b"
                               : part == "mean"     ? "running_mean"
                               : part == "variance" ? "running_std"
                                                    : part;
      return fmt::format("/{0}/{0}_{1}:0", name, leaf);
    }
    if (generation_ == Generation::kSecond) {
      const std::string leaf = part == "mean"       ? "moving_mean"
                               : part == "variance" ? "moving_variance"
                                                    : part;
      return fmt::format("/model_weights/{0}/{0}/{1}:0", name, leaf);
    }
    const std::string kind = norm ? "batch_normalization" : "conv2d";
    return fmt::format("/layers/{}{}/vars/{}", kind, place == 0 ? "" : fmt::format("_{}", place),
                       number);
  }

  void add(const Layer& layer, int place, bool norm, const std::vector<Part>& parts) {
    int number = 0;
    for (const auto& [part, dims] : parts) {
      std::int64_t count = 1;
      for (const std::int64_t d : dims) count *= d;
      std::vector<float>& out =
          values_[(norm ? layer.normalisation : layer.convolution) + "/" + part];
      // Few different values, so that writing them is quick; places are told apart by the index.
      const auto seed = static_cast<double>(random_.below(1000));
      for (std::int64_t i = 0; i < count; ++i) {
        out.push_back(static_cast<float>(0.01 * seed + 0.001 * static_cast<double>(i % 9973)));
      }
      const std::string where = path(layer, place, norm, part, number++);
      writer_.write(where, dims, out.data());
      if (generation_ == Generation::kThirdNamed) {
        writer_.set_attribute(where.substr(0, where.rfind('/')), "name",
                              keras_name(layer, generation_, norm));
      }
    }
  }

  Generation generation_;
  CounterRandom& random_;
  std::string root_;
  Hdf5Writer writer_;
  Values values_;
};

void expect_algebra(const ResNetWeights& weights, const Values& values, double epsilon) {
  EXPECT_EQ(weights.model.arch, "resnet50");
  EXPECT_TRUE(weights.model.stride_in_1x1);
  EXPECT_NEAR(weights.model.input_mean[0] * 255, 123.68, 1e-9);
  EXPECT_NEAR(weights.model.input_std[2] * 255, 1.0, 1e-12);
  EXPECT_EQ(weights.tensors.size(), 53U * 6);
  for (const Layer& layer : layers()) {
    const auto of = [&](const std::string& part) -> const std::vector<float>& {
      return values.at(part);
    };
    const std::vector<float>& kernel = of(layer.convolution + "/kernel");
    const auto* conv = weights.find(layer.convolution + ".weight");
    ASSERT_NE(conv, nullptr) << layer.convolution;
    ASSERT_EQ(conv->dims, (std::vector{layer.out, layer.in, layer.side, layer.side}));
    for (std::int64_t o = 0; o < layer.out; o += 7) {
      for (std::int64_t i = 0; i < layer.in; ++i) {
        for (std::int64_t y = 0; y < layer.side; ++y) {
          for (std::int64_t x = 0; x < layer.side; ++x) {
            const std::int64_t from = layer.stage == 1 ? 2 - i : i;  // BGR there
            const auto keras =
                static_cast<std::size_t>(((y * layer.side + x) * layer.in + from) * layer.out + o);
            const auto here =
                static_cast<std::size_t>(((o * layer.in + i) * layer.side + y) * layer.side + x);
            ASSERT_EQ(conv->values[here], kernel[keras]) << layer.convolution;
          }
        }
      }
    }
    const auto vector_of = [&](const char* part) {
      const auto* tensor = weights.find(layer.normalisation + part);
      return tensor == nullptr ? std::span<const float>() : tensor->values;
    };
    const auto scale = vector_of(".weight"), shift = vector_of(".bias"),
               mean = vector_of(".running_mean"), variance = vector_of(".running_var");
    ASSERT_EQ(scale.size(), static_cast<std::size_t>(layer.out)) << layer.normalisation;
    for (std::size_t c = 0; c < scale.size(); ++c) {
      EXPECT_EQ(scale[c], of(layer.normalisation + "/gamma")[c]);
      EXPECT_EQ(shift[c], of(layer.normalisation + "/beta")[c]);
      const double m = static_cast<double>(of(layer.normalisation + "/mean")[c]);
      const double b = static_cast<double>(of(layer.convolution + "/bias")[c]);
      EXPECT_EQ(mean[c], static_cast<float>(m - b)) << layer.normalisation;
      const double v = static_cast<double>(of(layer.normalisation + "/variance")[c]);
      EXPECT_EQ(variance[c], static_cast<float>(v + (epsilon - 1e-5))) << layer.normalisation;
    }
  }
}

TEST(KerasResNet, EveryGenerationOfNames) {
  CounterRandom random(random_seed(), 0, 0);
  const TemporaryFolder folder;
  for (const Generation generation : {Generation::kFirst, Generation::kSecond,
                                      Generation::kThirdNamed, Generation::kThirdCounted}) {
    SCOPED_TRACE(static_cast<int>(generation));
    KerasFile file(generation, random);
    const std::vector<std::byte> bytes = file.write();
    folder.write("k.h5", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const ResNetWeights weights =
        resnet_weights(read_tensor_file((folder.path() / "k.h5").string()));
    EXPECT_TRUE(weights.ignored.empty());
    expect_algebra(weights, file.values(), generation == Generation::kFirst ? 1e-3 : 1.001e-5);
  }
}

TEST(KerasResNet, OtherNetworksAreNamed) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "k.h5").string();
  const auto refusal = [&](Hdf5Writer& writer) {
    const std::vector<std::byte> bytes = writer.finish();
    folder.write("k.h5", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return message_of<InputError>([&] { resnet_weights(read_tensor_file(path)); });
  };
  const std::vector<float> values(64 * 3 * 49, 1.0F);
  Hdf5Writer second;
  second.write("/conv2_block1_preact_bn/conv2_block1_preact_bn/gamma:0", {64}, values.data());
  EXPECT_NE(refusal(second).find("ResNet V2"), std::string::npos);
  Hdf5Writer theano;
  theano.write("/conv1/conv1_W:0", {64, 3, 7, 7}, values.data());
  EXPECT_NE(refusal(theano).find("Theano"), std::string::npos);
  Hdf5Writer part;
  part.write("/conv1_conv/conv1_conv/kernel:0", {7, 7, 3, 64}, values.data());
  EXPECT_NE(refusal(part).find("gamma of bn1 is missing"), std::string::npos);
}

}  // namespace
}  // namespace rk
