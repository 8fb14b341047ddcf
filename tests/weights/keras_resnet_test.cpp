// Keras's ResNet-50 under the names of every generation must convert to exactly what the algebra of
// its layers, written out here, gives.
#include "weights/foreign/network_weights.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/keras_writer.h"
#include "tests/support/weights/repeated.h"
#include "weights/foreign/resnet_names.h"
#include "weights/hdf5/file.h"

#include <hdf5.h>

#include <map>
#include <optional>
#include <string>

namespace rk {
namespace {

// Keyed by "<torchvision's layer>/<part>".
using Values = std::map<std::string, std::vector<float>>;

void expect_algebra(const NetworkWeights& weights, const Values& values, double epsilon) {
  EXPECT_EQ(weights.model.arch, "resnet50");
  EXPECT_TRUE(weights.model.stride_in_1x1);
  EXPECT_NEAR(weights.model.input_mean[0] * 255, 123.68, 1e-9);
  EXPECT_NEAR(weights.model.input_std[2] * 255, 1.0, 1e-12);
  EXPECT_EQ(weights.tensors.size(), 53U * 6);
  for (const KerasLayer& layer : keras_layers()) {
    const auto of = [&](const std::string& part) -> const std::vector<float>& {
      return values.at(part);
    };
    const std::vector<float>& kernel = of(layer.convolution + "/kernel");
    const auto* conv = weights.find(layer.convolution + ".weight");
    ASSERT_NE(conv, nullptr) << layer.convolution;
    ASSERT_EQ(conv->dims, (std::vector{layer.out, layer.in, layer.side, layer.side}));
    std::int64_t moved = 0;  // not asserted one by one: there are millions
    for (std::int64_t o = 0; o < layer.out; o += 7) {
      for (std::int64_t i = 0; i < layer.in; ++i) {
        for (std::int64_t y = 0; y < layer.side; ++y) {
          for (std::int64_t x = 0; x < layer.side; ++x) {
            const std::int64_t from = layer.stage == 1 ? 2 - i : i;  // Keras's input is BGR
            const auto keras =
                static_cast<std::size_t>(((y * layer.side + x) * layer.in + from) * layer.out + o);
            const auto here =
                static_cast<std::size_t>(((o * layer.in + i) * layer.side + y) * layer.side + x);
            moved += conv->values[here] == kernel[keras] ? 0 : 1;
          }
        }
      }
    }
    EXPECT_EQ(moved, 0) << layer.convolution;
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

class KerasResNet : public FolderTest<TemporaryFolder> {
 protected:
  // Writes a file; returns its path.
  std::string file(const std::vector<std::byte>& bytes, const std::string& name = "k.h5") const {
    folder_.write(name, bytes);
    return in(name);
  }
  NetworkWeights read(const std::vector<std::byte>& bytes, const std::string& name = "k.h5") const {
    return network_weights(read_tensor_file(file(bytes, name)));
  }
  std::string refusal(const std::vector<std::byte>& bytes) const {
    const TensorFile given = read_tensor_file(file(bytes));
    return message_of<InputError>([&] { network_weights(given); });
  }
};

TEST_F(KerasResNet, Case44EveryGenerationOfNames) {
  CounterRandom random(random_seed(), 0, 0);
  for (const KerasGeneration generation :
       {KerasGeneration::kFirst, KerasGeneration::kFirstNumbered, KerasGeneration::kSecond,
        KerasGeneration::kSecondInside, KerasGeneration::kThirdNamed,
        KerasGeneration::kThirdCounted, KerasGeneration::kThirdCountedInside,
        KerasGeneration::kDependencies, KerasGeneration::kDoubledInside,
        KerasGeneration::kDoubledOnWindows}) {
    SCOPED_TRACE(static_cast<int>(generation));
    Values drawn;
    const NetworkWeights weights =
        read(keras_resnet50(generation, [&](const std::string& layer, const std::string& part,
                                            const std::vector<std::int64_t>& dims) {
          std::int64_t count = 1;
          for (const std::int64_t d : dims) count *= d;
          // Few different values, so that writing them is quick; the index tells places apart.
          const auto seed = static_cast<double>(random.below(1000));
          std::vector<float> period(9973);
          for (std::size_t i = 0; i < period.size(); ++i) {
            period[i] = static_cast<float>(0.01 * seed + 0.001 * static_cast<double>(i));
          }
          return drawn[layer + "/" + part] = repeated(period, static_cast<std::size_t>(count));
        }));
    EXPECT_TRUE(weights.ignored.empty());
    const bool first =
        generation == KerasGeneration::kFirst || generation == KerasGeneration::kFirstNumbered;
    expect_algebra(weights, drawn, first ? 1e-3 : 1.001e-5);
  }
}

std::vector<float> halves(const std::string&, const std::string&,
                          const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return std::vector<float>(static_cast<std::size_t>(count), 0.5F);
}

// What the file holds besides a network, under the names of its layers too, must not get into it.
TEST_F(KerasResNet, OneOfSeveralNetworks) {
  const std::vector<float> ones(64 * 64 * 49, 1.0F);
  const auto expect_halves = [](const NetworkWeights& weights) {
    for (const char* name : {"conv1.weight", "layer1.0.conv1.weight"}) {
      ASSERT_NE(weights.find(name), nullptr);
      EXPECT_EQ(weights.find(name)->values[0], 0.5F) << name;
    }
  };
  const std::string stem = "conv1_conv/kernel:0", first = "conv2_block1_1_conv/kernel:0";
  for (const KerasGeneration generation :
       {KerasGeneration::kSecond, KerasGeneration::kSecondInside}) {
    const NetworkWeights two = read(keras_resnet50(generation, halves, [&](Hdf5Writer& writer) {
      writer.write("/model_weights/a/" + stem, {7, 7, 3, 64}, ones.data());
      writer.write("/model_weights/a/" + first, {1, 1, 64, 64}, ones.data());
    }));
    expect_halves(two);
    const bool inside = generation == KerasGeneration::kSecondInside;
    EXPECT_EQ(two.notes.at(0), std::string("of 2 networks in the file the one of ") +
                                   (inside ? "'resnet50'" : "its root") + " was taken");
    EXPECT_EQ(two.ignored, (std::vector<std::string>{"a/" + stem, "a/" + first}));
  }
  // A layer of the name that the stem has in the first generation.
  const NetworkWeights one =
      read(keras_resnet50(KerasGeneration::kSecond, halves, [&](Hdf5Writer& writer) {
        writer.write("/model_weights/conv1/conv1/kernel:0", {3, 3, 64, 64}, ones.data());
      }));
  expect_halves(one);
  EXPECT_EQ(one.ignored, std::vector<std::string>{"conv1/conv1/kernel:0"});
  EXPECT_EQ(one.notes.size(), 1U);
  // Of two models inside another, in Keras 3, each layer states its name alone.
  const NetworkWeights third =
      read(keras_resnet50(KerasGeneration::kThirdNamed, halves, [&](Hdf5Writer& writer) {
        const std::string layer = "/layers/functional/layers/conv2d/vars";
        writer.write(layer + "/0", {7, 7, 3, 64}, ones.data());
        writer.set_attribute(layer, "name", "conv1_conv");
      }));
  expect_halves(third);
  EXPECT_EQ(third.ignored, std::vector<std::string>{"layers/functional/conv1_conv/vars/0"});
}

// Before Keras wrote names, a model inside another counted its layers from 0, and the one around it
// too.
TEST_F(KerasResNet, AClassifierAroundAModelWithoutNames) {
  const std::vector<float> ones(2048 * 3, 1.0F);
  for (const auto& [generation, container] :
       {std::pair<KerasGeneration, std::string>{KerasGeneration::kThirdCountedInside, "layers"},
        {KerasGeneration::kDoubledInside, "_layer_checkpoint_dependencies"}}) {
    const std::vector<std::byte> bytes =
        keras_resnet50(generation, halves, [&, &around = container](Hdf5Writer& writer) {
          writer.write("/" + around + "/dense/vars/0", {2048, 3}, ones.data());
          writer.write("/" + around + "/dense/vars/1", {3}, ones.data());
          writer.write("/" + around + "/dense_2/vars/1", {5}, ones.data());
          writer.write("/" + around + "/conv2d/vars/0", {3, 3, 64, 1}, ones.data());
          writer.write("/optimizer/vars/1", {1}, ones.data());
        });
    const NetworkWeights weights = read(bytes, "k.weights.h5");
    ASSERT_NE(weights.find("fc.weight"), nullptr);
    EXPECT_EQ(weights.find("fc.weight")->dims, (std::vector<std::int64_t>{3, 2048}));
    ASSERT_NE(weights.find("conv1.weight"), nullptr);
    EXPECT_EQ(weights.find("conv1.weight")->values[0], 0.5F);
    EXPECT_EQ(weights.ignored,
              (std::vector<std::string>{container + "/conv2d/vars/0", container + "/dense_2/vars/1",
                                        "optimizer/vars/1"}));
  }
}

// TensorFlow 1 numbers the names of weights whose layer's name was given before, but Keras does not
// number the group of the layer.
TEST_F(KerasResNet, ALayerWhoseNameTensorFlow1Numbered) {
  const std::vector<float> ones(2048 * 3, 1.0F);
  const std::vector<std::byte> bytes =
      keras_resnet50(KerasGeneration::kFirst, halves, [&](Hdf5Writer& writer) {
        writer.write("/fc1000/fc1000_12/kernel:0", {2048, 3}, ones.data());
        writer.write("/fc1000/fc1000_12/bias:0", {3}, ones.data());
        writer.write("/conv1_1/conv1_1/kernel:0", {7, 7, 3, 8}, ones.data());
        writer.write("/head_1/head_1/kernel:0", {3, 3}, ones.data());
      });
  const NetworkWeights weights = read(bytes);
  ASSERT_NE(weights.find("fc.weight"), nullptr);
  EXPECT_EQ(weights.find("fc.weight")->dims, (std::vector<std::int64_t>{3, 2048}));
  EXPECT_EQ(weights.find("conv1.weight")->values[0], 0.5F);
  EXPECT_EQ(weights.ignored,
            (std::vector<std::string>{"conv1_1/conv1_1/kernel:0", "head_1/head_1/kernel:0"}));
}

// Data sets that are no array of numbers keep nobody from reading a network beside them; one in the
// place of a tensor of the network's does.
TEST_F(KerasResNet, DataSetsOfOtherKindsAreLeftOut) {
  const std::string path = in("k.h5");
  const auto read_with_opaque = [&](KerasGeneration generation, const char* name) {
    file(keras_resnet50(generation, halves, [](Hdf5Writer& writer) {
      const std::vector<float> ones(2048 * 3, 1.0F);
      writer.write("/predictions/predictions/kernel:0", {2048, 3}, ones.data());
      writer.write("/predictions/predictions/bias:0", {3}, ones.data());
    }));
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    if (H5Lexists(file, name, H5P_DEFAULT) > 0) H5Ldelete(file, name, H5P_DEFAULT);
    const hid_t type = H5Tcreate(H5T_OPAQUE, 2), space = H5Screate(H5S_SCALAR);
    const hid_t set = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(set, 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(links);
    H5Fclose(file);
    return read_tensor_file(path);
  };
  const std::string why =
      " holds bytes that say no type, as Keras writes bfloat16; save it in float32";
  const TensorFile beside = read_with_opaque(KerasGeneration::kThirdNamed, "/a/flags");
  EXPECT_EQ(beside.notes,
            std::vector<std::string>{"left out: 1 data set of kinds that are not read: a/flags"});
  EXPECT_EQ(network_weights(beside).tensors.size(), 53U * 6 + 2);
  const TensorFile head =
      read_with_opaque(KerasGeneration::kThirdNamed, "/predictions/predictions/kernel:0");
  EXPECT_EQ(network_weights(head).tensors.size(), 53U * 6);
  for (const auto& [generation, name] :
       {std::pair<KerasGeneration, const char*>{KerasGeneration::kThirdNamed,
                                                "/layers/batch_normalization_7/vars/3"},
        {KerasGeneration::kThirdCounted, "/layers/conv2d/vars/0"},
        {KerasGeneration::kThirdCounted, "/layers/conv2d_7/vars/1"}}) {  // a bias may be missing
    const TensorFile file = read_with_opaque(generation, name);
    EXPECT_EQ(message_of<InputError>([&] { network_weights(file); }), path + ": " + name + why);
  }
}

// Names that only look like those of its layers are no part of the network.
TEST_F(KerasResNet, AlmostTheNamesOfItsLayers) {
  using Name = std::optional<std::string>;
  EXPECT_EQ(name_of_keras_layer("conv2_block1_0_conv"), Name("layer1.0.downsample.0"));
  EXPECT_EQ(name_of_keras_layer("conv5_block3_3_bn"), Name("layer4.2.bn3"));
  EXPECT_EQ(name_of_keras_layer("res2a_branch1"), Name("layer1.0.downsample.0"));
  EXPECT_EQ(name_of_keras_layer("bn5c_branch2c"), Name("layer4.2.bn3"));
  for (const char* name :
       {"conv2_block0_1_conv", "conv1_block1_1_conv", "conv6_block1_1_conv", "conv2_block1_4_conv",
        "conv2_block1_1_conv_1", "conv2_block1_1_relu", "conv_block1_1_conv", "conv2_block1_conv",
        "res2a_branch2", "res2a_branch2d", "res2a_branch2bb", "res2a_branch1a", "res2_branch2a",
        "res1a_branch2a", "res6a_branch2a", "act2a_branch2a", "bn2a_branch3", "conv1_", ""}) {
    EXPECT_EQ(name_of_keras_layer(name), std::nullopt) << name;
  }
}

// A classifier is taken if it fits, beside the network or in a model around it.
TEST_F(KerasResNet, AnyClassifier) {
  for (const auto& [where, features] :
       {std::pair<std::string, std::int64_t>{"predictions/predictions", 2048},
        {"predictions/sequential/predictions", 2048},
        {"predictions/predictions", 256}}) {
    const std::vector<float> values(2048 * 3, 1.0F);
    const std::vector<std::byte> bytes =
        keras_resnet50(KerasGeneration::kSecondInside, halves,
                       [&, &at = where, in = features](Hdf5Writer& writer) {
                         writer.write("/model_weights/" + at + "/kernel:0", {in, 3}, values.data());
                         writer.write("/model_weights/" + at + "/bias:0", {3}, values.data());
                       });
    const NetworkWeights weights = read(bytes);
    const auto* classifier = weights.find("fc.weight");
    if (features == 2048) {
      ASSERT_NE(classifier, nullptr) << where;
      EXPECT_EQ(classifier->dims, (std::vector<std::int64_t>{3, 2048}));
      EXPECT_TRUE(weights.ignored.empty());
    } else {
      EXPECT_EQ(classifier, nullptr);
      EXPECT_EQ(weights.ignored,
                (std::vector<std::string>{where + "/kernel:0", where + "/bias:0"}));
      EXPECT_EQ(weights.notes.at(0),
                where + "/kernel:0 [256, 3] is no layer on 2048 features and was left");
    }
  }
}

TEST_F(KerasResNet, Case44OtherNetworksAreNamed) {
  const std::vector<float> values(64 * 3 * 49, 1.0F);
  Hdf5Writer second;
  second.write("/conv2_block1_preact_bn/conv2_block1_preact_bn/gamma:0", {64}, values.data());
  EXPECT_TRUE(holds(refusal(second.finish()), "ResNet V2"));
  Hdf5Writer theano;
  theano.write("/conv1/conv1_W:0", {64, 3, 7, 7}, values.data());
  EXPECT_TRUE(holds(refusal(theano.finish()), "Theano"));
  Hdf5Writer other;
  other.write("/block1_conv1/block1_conv1/kernel:0", {64, 3, 7, 7}, values.data());
  EXPECT_TRUE(
      holds(refusal(other.finish()),
            "holds no layer of Keras's ResNet-50, the one network that is read from HDF5 of "
            "other programs, but block1_conv1/"));
  Hdf5Writer part;
  part.write("/conv1_conv/conv1_conv/kernel:0", {7, 7, 3, 64}, values.data());
  const std::string message = refusal(part.finish());
  EXPECT_TRUE(holds(message, "gamma of bn1 is missing"));
  // The message lists the first few of some two hundred names.
  EXPECT_TRUE(holds(message, " more; `convert " + in("k.h5") + " --list` shows what is there"));
}

// Deeper networks hold every tensor of a ResNet50 but must not be taken for one.
TEST_F(KerasResNet, DeeperNetworksAreNamed) {
  const auto refused = [&](int blocks) {
    Hdf5Writer writer;
    const std::vector<float> value(1, 1.0F);
    for (int block = 1; block <= blocks; ++block) {
      writer.write(fmt::format("/conv4_block{0}_1_conv/conv4_block{0}_1_conv/bias:0", block), {1},
                   value.data());
    }
    return refusal(writer.finish());
  };
  EXPECT_TRUE(holds(refused(6), "is not the whole of Keras's ResNet-50"));
  EXPECT_TRUE(holds(refused(7),
                    ": holds conv4_block7_1_conv/conv4_block7_1_conv/bias:0, a layer of a "
                    "deeper ResNet, which"));
  EXPECT_TRUE(holds(refused(23), ", a layer of Keras's ResNet101, which ResNet50 has not; give "));
  EXPECT_TRUE(holds(refused(36), ", a layer of Keras's ResNet152, which ResNet50 has not; give "));
}

TEST_F(KerasResNet, EmbeddingsAreNoWeights) {
  Hdf5Writer embeddings;
  const std::vector<float> values(6, 1.0F);
  const std::vector<std::int64_t> labels(3, 1);
  embeddings.write("/embeddings", {3, 2}, values.data());
  embeddings.write("/labels", {3}, labels.data());
  const std::string path = file(embeddings.finish(), "e.h5");
  const TensorFile given = read_tensor_file(path);
  for (const char* arch : {"", "resnet20"}) {
    EXPECT_EQ(message_of<InputError>([&] { network_weights(given, arch); }),
              path +
                  ": is embeddings, not weights; give the checkpoint (best.h5) that they were "
                  "made with");
  }
}

}  // namespace
}  // namespace rk
