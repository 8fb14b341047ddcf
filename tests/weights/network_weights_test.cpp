// A network's tensors under the names that other programs give them.
#include "weights/foreign/network_weights.h"

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/torch_network.h"
#include "weights/architectures/network_tensors.h"
#include "weights/architectures/registry.h"
#include "weights/checkpoint.h"
#include "weights/foreign/weight_files.h"
#include "weights/sealed_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <regex>

namespace rk {
namespace {

class ForeignWeights : public FolderTest<TemporaryFolder> {
 protected:
  NetworkWeights read(const TorchContent& content, const std::string& arch = "") {
    folder_.write("r.pth", torch_zip(content));
    return network_weights(read_tensor_file(in("r.pth")), arch);
  }
  std::string refusal(const TorchContent& content, const std::string& arch = "") {
    folder_.write("r.pth", torch_zip(content));
    const TensorFile file = read_tensor_file(in("r.pth"));
    return message_of<InputError>([&] { network_weights(file, arch); });
  }
  static void expect_whole(const NetworkWeights& weights, const std::string& arch) {
    EXPECT_EQ(weights.model.arch, arch);
    std::size_t at = 0;
    for (const NetworkTensor& tensor : network_tensors(arch)) {
      ASSERT_LT(at, weights.tensors.size());
      const NetworkWeights::Tensor& read = weights.tensors[at++];
      EXPECT_EQ(read.name, tensor.name);
      EXPECT_EQ(read.dims, tensor.dims);
      if (tensor.kind == NetworkTensor::Kind::kCounter) {
        EXPECT_EQ(read.count, kMadeUpCount);
      } else {
        const std::vector<float> values = made_up_values(tensor);
        EXPECT_TRUE(
            std::equal(values.begin(), values.end(), read.values.begin(), read.values.end()))
            << tensor.name;
      }
    }
  }
};

// A network's names, each on a single value: what a file holds is told from its names.
TorchContent names_of(const std::string& arch) {
  TorchContent content;
  for (const NetworkTensor& tensor : network_tensors(arch)) {
    add_tensor(content, tensor.name, {1}, {1});
  }
  return content;
}

std::string as_transformers(const std::string& name) {
  std::smatch part;
  const std::string front = "resnet.encoder.stages.";
  const auto kind = [](const std::string& letter) {
    return letter == "conv" || letter == "0" ? "convolution" : "normalization";
  };
  if (std::regex_match(name, part, std::regex("layer(\\d)\\.(\\d+)\\.(conv|bn)(\\d)\\.(.*)"))) {
    return fmt::format("{}{}.layers.{}.layer.{}.{}.{}", front, std::stoi(part[1]) - 1,
                       part[2].str(), std::stoi(part[4]) - 1, kind(part[3]), part[5].str());
  }
  if (std::regex_match(name, part, std::regex("layer(\\d)\\.(\\d+)\\.downsample\\.(\\d)\\.(.*)"))) {
    return fmt::format("{}{}.layers.{}.shortcut.{}.{}", front, std::stoi(part[1]) - 1,
                       part[2].str(), kind(part[3]), part[4].str());
  }
  if (name.starts_with("conv1.")) return "resnet.embedder.embedder.convolution." + name.substr(6);
  if (name.starts_with("bn1.")) return "resnet.embedder.embedder.normalization." + name.substr(4);
  return "classifier.1" + name.substr(2);
}

std::string as_nvidia(const std::string& name) {
  if (!name.starts_with("layer")) return name;
  return fmt::format("layers.{}{}", name[5] - '1', name.substr(6));
}

TEST_F(ForeignWeights, OfEveryDialect) {
  expect_whole(read(torch_network("resnet50", 7)), "resnet50");
  expect_whole(read(torch_network("resnet18")), "resnet18");
  expect_whole(read(torch_network("resnet20")), "resnet20");
  const NetworkWeights transformers = read(torch_network("resnet18", as_transformers, 7));
  expect_whole(transformers, "resnet18");
  EXPECT_NE(transformers.find("fc.weight"), nullptr);
  expect_whole(read(torch_network("resnet18", as_nvidia)), "resnet18");
}

// The prefixes of parallel training, Lightning and training states must be removed from names of
// every dialect.
TEST_F(ForeignWeights, OfEveryDialectBehindWhatWrappersPutInFront) {
  const auto without_resnet = [](const std::string& name) {
    const std::string other = as_transformers(name);
    return other.starts_with("resnet.") ? other.substr(7) : other;
  };
  for (const Rename& rename :
       {Rename(as_transformers), Rename(without_resnet), Rename(as_nvidia)}) {
    for (const std::string prefix : {"", "module.", "model.", "student_model.net."}) {
      TorchContent content = torch_network(
          "resnet20", [&](const std::string& name) { return prefix + rename(name); }, 5);
      if (prefix == "model.") content.wrapper = "state_dict";
      const NetworkWeights weights = read(content);
      expect_whole(weights, "resnet20");
      ASSERT_NE(weights.find("fc.bias"), nullptr) << prefix;
      EXPECT_TRUE(weights.ignored.empty());
      EXPECT_EQ(weights.names.find("behind") == std::string::npos, prefix.empty()) << weights.names;
    }
  }
}

TEST_F(ForeignWeights, Case28BehindWhatWrappersPutInFront) {
  for (const char* prefix :
       {"module.", "_orig_mod.", "model.", "backbone.", "module.backbone.0."}) {
    const NetworkWeights weights = read(torch_network(
        "resnet20", [&](const std::string& name) { return prefix + name; }, 5));
    expect_whole(weights, "resnet20");
    EXPECT_TRUE(holds(weights.names, prefix));
    EXPECT_EQ(weights.find("fc.bias")->dims, std::vector<std::int64_t>{5});
  }
  TorchContent nested = torch_network("resnet20");
  nested.wrapper = "state_dict";
  expect_whole(read(nested), "resnet20");
}

// Of two networks in a file, the query encoder or the averaged one is taken; a projection must not
// be taken for the classifier.
TEST_F(ForeignWeights, OneOfSeveralNetworks) {
  for (const auto& [taken, left] :
       {std::pair<std::string, std::string>{"module.encoder_q.", "module.encoder_k."},
        {"teacher.backbone.", "student.backbone."},
        {"image_encoder.", "semantic_encoder."},
        {"model_ema.", "model."},
        {"swa_model.module.", "model."},
        {"EMA.", "model."},
        {"ema_student.", "student."},
        {"weights.", "grad."},
        {"net.", "optimizer_state_dict.exp_avg."}}) {
    TorchContent content = torch_network(
        "resnet20", [&prefix = taken](const std::string& name) { return prefix + name; }, 128);
    for (const NetworkTensor& tensor : network_tensors("resnet20")) {
      if (tensor.kind == NetworkTensor::Kind::kCounter) continue;
      add_tensor(content, left + tensor.name, tensor.dims,
                 std::vector<float>(made_up_values(tensor).size(), -1.0F));
    }
    const NetworkWeights weights = read(content);
    expect_whole(weights, "resnet20");
    EXPECT_EQ(weights.find("fc.weight") == nullptr, taken == "module.encoder_q.") << taken;
    EXPECT_GE(weights.ignored.size(), 100U);
  }
}

// MMEngine's hook swaps the averaged weights and the others while it saves. torch's AveragedModel
// counts under another name, and holds the averages itself.
TEST_F(ForeignWeights, TheAveragedNetworkOfMMEngine) {
  for (const bool swapped : {true, false}) {
    const std::string taken = swapped ? "state_dict/backbone." : "ema_state_dict/module.backbone.";
    const std::string left = swapped ? "ema_state_dict/module.backbone." : "state_dict/backbone.";
    TorchContent content = torch_network(
        "resnet20", [&](const std::string& name) { return taken + name; }, 128);
    for (const NetworkTensor& tensor : network_tensors("resnet20")) {
      if (tensor.kind == NetworkTensor::Kind::kCounter) continue;
      add_tensor(content, left + tensor.name, tensor.dims,
                 std::vector<float>(made_up_values(tensor).size(), -1.0F));
    }
    add_tensor(content, swapped ? "ema_state_dict/steps" : "ema_state_dict/n_averaged", {}, {7});
    const NetworkWeights weights = read(content);
    expect_whole(weights, "resnet20");
    EXPECT_EQ(weights.notes.at(0),
              "of 2 networks in the file the one of '" + taken + "' was taken");
  }
}

// A part of a model in several files is told from a damaged file; a tensor that is there, but is
// not read, from one that is missing.
TEST_F(ForeignWeights, WhatMissesTensorsSaysWhy) {
  TorchContent part = torch_network("resnet20");
  std::erase_if(part.tensors, [](const auto& tensor) { return tensor.name == "conv1.weight"; });
  const std::string missing = "those of a resnet20: 1 missing: conv1.weight; `convert ";
  EXPECT_TRUE(holds(refusal(part), missing));
  EXPECT_FALSE(holds(refusal(part), "one part of a model"));
  for (const char* name : {"model-00001-of-00002.pth", "pytorch_model-00002-of-00003.bin"}) {
    folder_.write(name, torch_zip(part));
    const TensorFile file = read_tensor_file(in(name));
    const std::string text = message_of<InputError>([&] { network_weights(file); });
    EXPECT_TRUE(holds(text, missing)) << text;
    EXPECT_TRUE(holds(text, "(it is one part of a model in several files: join")) << text;
  }
  PickleWriter sparse;
  sparse.global("torch._utils", "_rebuild_sparse_tensor").raw("(NNtR");
  part.further.emplace_back("conv1.weight", sparse.bytes());
  EXPECT_TRUE(holds(refusal(part),
                    "1 missing: conv1.weight; left out: 1 tensor of types that are not read "
                    "(sparse, quantised, complex and the like): conv1.weight; names a global"));
}

// Squeeze and excitation is of a network's blocks, not of what stands beside it.
TEST_F(ForeignWeights, AttentionBesideTheNetworkIsNotItsOwn) {
  TorchContent content =
      torch_network("resnet20", [](const std::string& name) { return "backbone." + name; });
  add_tensor(content, "head.se.fc.weight", {1}, {1});
  expect_whole(read(content), "resnet20");
  add_tensor(content, "backbone.layer1.0.se.fc1.weight", {1}, {1});
  EXPECT_TRUE(holds(refusal(content), "a ResNet-20"));
}

// An averaged copy of parameters alone, or of another network, must not hide one that will do.
TEST_F(ForeignWeights, ANetworkThatWillNotDoIsPassedOver) {
  const auto add = [](TorchContent& content, const std::string& prefix, const std::string& arch,
                      bool statistics) {
    for (const NetworkTensor& tensor : network_tensors(arch)) {
      if (tensor.kind == NetworkTensor::Kind::kCounter) continue;
      if (!statistics && tensor.name.find("running_") != std::string::npos) continue;
      add_tensor(content, prefix + tensor.name, tensor.dims,
                 std::vector<float>(made_up_values(tensor).size(), -1.0F));
    }
  };
  const auto named = [](const std::string& arch) {
    return torch_network(arch, [](const std::string& name) { return "model." + name; });
  };
  TorchContent shadow = named("resnet20");
  add(shadow, "ema.shadow.", "resnet20", false);
  const NetworkWeights taken = read(shadow);
  expect_whole(taken, "resnet20");
  EXPECT_EQ(taken.notes.at(0),
            "of 2 networks in the file the one of 'model.' was taken, since that of 'ema.shadow.' "
            "is not whole or not known");
  TorchContent squeezed = shadow;
  add(squeezed, "model_ema.", "resnet20", true);
  add_tensor(squeezed, "model_ema.layer1.0.attention.weight", {1}, {1});
  expect_whole(read(squeezed), "resnet20");
  TorchContent two = named("resnet20");
  add(two, "model_ema.", "resnet18", true);
  EXPECT_EQ(read(two).model.arch, "resnet18");
  const NetworkWeights asked = read(two, "resnet20");
  expect_whole(asked, "resnet20");
  EXPECT_TRUE(holds(asked.notes.at(0), "since that of 'model_ema.' is no whole resnet20"));
  // If none will do, the most preferred is reported.
  TorchContent none;
  add(none, "model.", "resnet20", false);
  add(none, "ema.", "resnet20", true);
  std::erase_if(none.tensors, [](const auto& tensor) { return tensor.name == "ema.conv1.weight"; });
  EXPECT_TRUE(holds(refusal(none), "those of a resnet20: 1 missing: conv1.weight;"));
}

// The normalisation behind a convolution takes its bias off.
TEST_F(ForeignWeights, BiasesOfConvolutionsGoIntoTheMeans) {
  TorchContent content = torch_network("resnet20");
  std::vector<float> bias(32);
  std::iota(bias.begin(), bias.end(), 1.0F);
  add_tensor(content, "layer2.0.downsample.0.bias", {32}, bias);
  const NetworkWeights weights = read(content);
  EXPECT_TRUE(weights.ignored.empty());
  EXPECT_EQ(weights.notes.at(0), "1 bias of convolutions went into the normalisations' means");
  for (const NetworkTensor& tensor : network_tensors("resnet20")) {
    if (tensor.kind != NetworkTensor::Kind::kMean) continue;
    std::vector<float> expected = made_up_values(tensor);
    if (tensor.name == "layer2.0.downsample.1.running_mean") {
      for (std::size_t i = 0; i < bias.size(); ++i) expected[i] -= bias[i];
    }
    const NetworkWeights::Tensor* mean = weights.find(tensor.name);
    ASSERT_NE(mean, nullptr) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(mean->values, expected)) << tensor.name;
  }
  TorchContent other = torch_network("resnet20");
  add_tensor(other, "conv1.bias", {2}, {1, 2});
  EXPECT_TRUE(
      holds(refusal(other), "1 of another shape or type: conv1.bias F32 [2] where [16] is"));
  TorchContent integers = torch_network("resnet20");
  integers.storages[integers.tensors[0].storage].type = ElementType::kI32;
  EXPECT_TRUE(holds(refusal(integers),
                    "1 of another shape or type: conv1.weight I32 [16, 3, 3, 3] where F32 is"));
}

// Without what a network has inside its blocks, another one would be computed. Heads and counts are
// left out, since they change no features.
TEST_F(ForeignWeights, PartsInsideTheNetworkAreNotLeftOut) {
  for (const char* name : {"layer1.0.ca.fc1.weight", "layer3.2.se_module.fc2.bias", "conv1.gate",
                           "bn1.alpha", "layer2.attention.weight"}) {
    TorchContent content = torch_network("resnet20");
    add_tensor(content, name, {1}, {1});
    EXPECT_TRUE(holds(refusal(content), std::string("its tensors are not those of a resnet20: 1 of "
                                                    "parts that it does not have: ") +
                                            name + "; `convert "));
  }
  TorchContent transformers = torch_network("resnet18", as_transformers);
  const std::string block = "resnet.encoder.stages.0.layers.1.";
  add_tensor(transformers, block + "attention.weight", {1}, {1});
  add_tensor(transformers, block + "layer.gate", {1}, {1});
  EXPECT_TRUE(holds(refusal(transformers), "2 of parts that it does not have: " + block +
                                               "attention.weight, " + block + "layer.gate;"));
  TorchContent inception = torch_network("inception_v3");
  add_tensor(inception, "Mixed_5b.scale", {1}, {1});
  EXPECT_TRUE(holds(refusal(inception), "1 of parts that it does not have: Mixed_5b.scale;"));
  TorchContent content = torch_network("resnet20");
  const std::vector<std::string> harmless = {
      "layer1.0.conv1.total_ops", "layer1.0.total_params",   "layer1.0.bn9.num_batches_tracked",
      "projector.bias",           "bottleneck.running_mean", "layer_norm.weight"};
  for (const std::string& name : harmless) add_tensor(content, name, {1}, {1});
  EXPECT_EQ(read(content).ignored.size(), harmless.size());
}

TEST_F(ForeignWeights, Case30OldFilesCountNoBatches) {
  TorchContent content = torch_network("resnet20");
  std::erase_if(content.tensors,
                [](const auto& tensor) { return tensor.name.ends_with("num_batches_tracked"); });
  const NetworkWeights weights = read(content);
  EXPECT_EQ(weights.find("bn1.num_batches_tracked")->count, 0);
}

// A whole model stored as float16 or float64 has its counters so, too.
TEST_F(ForeignWeights, CountersMayBeRealNumbers) {
  TorchContent content = torch_network("resnet20");
  for (const auto& tensor : content.tensors) {
    if (!tensor.name.ends_with("num_batches_tracked")) continue;
    content.storages[tensor.storage].type = ElementType::kF16;
    content.storages[tensor.storage].bytes = std::string("\x00\x42", 2);  // 3
  }
  expect_whole(read(content), "resnet20");
  TorchContent::Storage& first = content.storages[content.tensors[5].storage];
  ASSERT_EQ(content.tensors[5].name, "bn1.num_batches_tracked");
  first.type = ElementType::kF64;
  first.bytes = std::string("\0\0\0\x10\0\0\x70\x41", 8);
  EXPECT_EQ(read(content).find("bn1.num_batches_tracked")->count, (1 << 24) + 1);  // no float32
  first.type = ElementType::kF16;
  first.bytes = std::string("\x00\x7c", 2);  // infinity, as of each count above 65504
  const NetworkWeights halved = read(content);
  EXPECT_EQ(halved.find("bn1.num_batches_tracked")->count, 0);
  EXPECT_TRUE(holds(fmt::format("{}", fmt::join(halved.notes, "\n")),
                    "1 counter of batches held no finite number (float16 ends at 65504) and became "
                    "0"));
  content.tensors[5].dims = {2};
  content.tensors[5].strides = {0};
  EXPECT_TRUE(holds(refusal(content), "bn1.num_batches_tracked F16 [2] where an integer is"));
}

// The embedding layer may lie beside the network in a module that holds both.
TEST_F(ForeignWeights, AnEmbeddingLayerBesideTheNetwork) {
  for (const auto& [front, network] : {std::pair<std::string, std::string>{"", "body."},
                                       {"", "backbone."},
                                       {"", "net.trunk."},
                                       {"module.", "backbone."},
                                       {"", ""}}) {
    TorchContent content = torch_network(
        "resnet20", [&, f = front, n = network](const auto& name) { return f + n + name; });
    add_tensor(content, front + "embedding.weight", {4, 64}, std::vector<float>(256, 0.5F));
    add_tensor(content, front + "embedding.bias", {4}, {1, 2, 3, 4});
    const NetworkWeights weights = read(content);
    expect_whole(weights, "resnet20");
    EXPECT_EQ(weights.model.dim, 4) << network;
    ASSERT_NE(weights.find("embedding.bias"), nullptr);
    EXPECT_EQ(weights.find("embedding.bias")->values[3], 4.0F);
    EXPECT_TRUE(weights.ignored.empty());
    EXPECT_TRUE(holds(weights.unsaid, "does not say how the network of its embedding pools"));
  }
}

TEST_F(ForeignWeights, AnEmbeddingLayerHasALargestSize) {
  const auto with_dim = [](std::int64_t dim) {
    TorchContent content = torch_network("resnet20");
    add_tensor(content, "embedding.weight", {dim, 64},
               std::vector<float>(static_cast<std::size_t>(dim) * 64));
    add_tensor(content, "embedding.bias", {dim}, std::vector<float>(static_cast<std::size_t>(dim)));
    return content;
  };
  EXPECT_EQ(read(with_dim(kMostDim)).model.dim, kMostDim);
  EXPECT_TRUE(holds(refusal(with_dim(kMostDim + 1)),
                    "r.pth: embedding.weight makes embeddings of 65537 numbers, more than 65536; "
                    "save the weights without this layer"));
}

// Training programs put the layer that makes the embedding in the classifier's place.
TEST_F(ForeignWeights, AClassifierMayBeTheEmbeddingLayer) {
  const NetworkWeights as_classifier = read(torch_network("resnet20", 5));
  NetworkWeights weights = as_classifier;
  take_classifier_for_embedding(weights, "r.pth", false);
  EXPECT_EQ(weights.model.dim, 5);
  EXPECT_EQ(weights.find("fc.weight"), nullptr);
  EXPECT_TRUE(std::ranges::equal(weights.find("embedding.weight")->values,
                                 as_classifier.find("fc.weight")->values));
  EXPECT_TRUE(std::ranges::equal(weights.find("embedding.bias")->values,
                                 as_classifier.find("fc.bias")->values));
  EXPECT_TRUE(holds(weights.unsaid, "does not say how the network of its embedding pools"));
  const auto refused = [](NetworkWeights from) {
    return message_of<InputError>([&] { take_classifier_for_embedding(from, "r.pth", true); });
  };
  EXPECT_EQ(refused(read(torch_network("resnet20"))),
            "--fc embedding: r.pth has no layer fc on its features; leave --fc out");
  TorchContent both = torch_network("resnet20", 5);
  add_tensor(both, "embedding.weight", {2, 64}, std::vector<float>(128, 0.5F));
  EXPECT_EQ(refused(read(both)),
            "--fc embedding: r.pth has an embedding layer beside fc; leave --fc out");
  EXPECT_TRUE(holds(refused(read(torch_network("resnet20", kMostDim + 1))), "more than 65536"));
}

TEST_F(ForeignWeights, ALayerWithoutABiasHasZeros) {
  TorchContent content = torch_network("resnet20");
  add_tensor(content, "embedding.weight", {2, 64}, std::vector<float>(128, 0.5F));
  const NetworkWeights weights = read(content);
  EXPECT_EQ(weights.model.dim, 2);
  EXPECT_TRUE(std::ranges::equal(weights.find("embedding.bias")->values, std::array{0.0F, 0.0F}));
  EXPECT_EQ(weights.notes.back(), "embedding.weight has no bias: zeros");
  add_tensor(content, "embedding.bias", {3}, {1, 2, 3});
  EXPECT_EQ(read(content).model.dim, 0);
  EXPECT_TRUE(holds(read(content).notes.back(),
                    "embedding.bias [3] is no bias of embedding.weight, and both were left"));
}

TEST_F(ForeignWeights, Case25WhatIsNotExpectedIsLeftAndNamed) {
  TorchContent content = torch_network("resnet20");
  add_tensor(content, "projector.0.weight", {2, 2}, {1, 2, 3, 4});
  const NetworkWeights weights = read(content);
  expect_whole(weights, "resnet20");
  EXPECT_EQ(weights.ignored, std::vector<std::string>{"projector.0.weight"});
}

// A network without a classifier, with one of any size, or with something else in its place.
TEST_F(ForeignWeights, Case27AnyClassifier) {
  EXPECT_EQ(read(torch_network("resnet20")).find("fc.weight"), nullptr);
  for (const std::int64_t classes : {1, 21843}) {
    EXPECT_EQ(read(torch_network("resnet20", classes)).find("fc.bias")->dims, std::vector{classes});
  }
  TorchContent content = torch_network("resnet20");
  add_tensor(content, "fc.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  const NetworkWeights weights = read(content);
  expect_whole(weights, "resnet20");
  EXPECT_EQ(weights.find("fc.weight"), nullptr);
  EXPECT_EQ(weights.ignored, std::vector<std::string>{"fc.weight"});
}

TEST_F(ForeignWeights, Case24WhatIsMissingOrOfAnotherShapeIsListed) {
  TorchContent content = torch_network("resnet20");
  content.tensors[0].dims = {16, 3, 9};
  content.tensors[0].strides = {27, 9, 1};
  std::erase_if(content.tensors, [](const auto& tensor) {
    return tensor.name == "layer2.0.bn1.bias" || tensor.name == "layer3.1.conv2.weight";
  });
  const std::string message = refusal(content);
  for (const char* part : {"2 missing: layer2.0.bn1.bias, layer3.1.conv2.weight",
                           "1 of another shape or type: conv1.weight F32 [16, 3, 9]"}) {
    EXPECT_TRUE(holds(message, part));
  }
}

// A wrong --arch is answered with what the file holds; long lists of names are cut.
TEST_F(ForeignWeights, AnotherArchIsNamedAndListsAreCut) {
  const std::string path = in("r.pth");
  EXPECT_EQ(refusal(torch_network("resnet20"), "resnet50"),
            path + ": holds a resnet20, not resnet50; leave --arch out");
  EXPECT_EQ(refusal(torch_network("resnet20"), "googlenet"),
            path + ": holds a resnet20, not googlenet; leave --arch out");
  TorchContent part = torch_network("resnet18");
  std::erase_if(part.tensors,
                [](const auto& tensor) { return tensor.name.starts_with("layer4.1"); });
  EXPECT_EQ(refusal(part, "resnet18"),
            path +
                ": its tensors are not those of a resnet18: 10 missing: layer4.1.conv1.weight, "
                "layer4.1.bn1.weight, layer4.1.bn1.bias, layer4.1.bn1.running_mean, "
                "layer4.1.bn1.running_var and 5 more; `convert " +
                path + " --list` shows what it holds");
}

// A larger network must not be taken for the one that --arch names by leaving out its rest.
TEST_F(ForeignWeights, AnArchDoesNotTurnOtherNetworksIntoIt) {
  TorchContent deeper = names_of("resnet18");
  for (const auto& [stage, blocks] : {std::pair{1, 3}, {2, 4}, {3, 6}, {4, 3}}) {
    for (int block = 2; block < blocks; ++block) {
      add_tensor(deeper, fmt::format("layer{}.{}.conv1.weight", stage, block), {1}, {1});
    }
  }
  EXPECT_TRUE(
      holds(refusal(deeper, "resnet18"), ": holds a ResNet-34, not a resnet18; resnet20, "));
  TorchContent squeezed = names_of("resnet50");
  add_tensor(squeezed, "layer1.0.se.fc1.weight", {1}, {1});
  EXPECT_TRUE(holds(refusal(squeezed, "resnet50"),
                    ": holds a ResNet-50 with squeeze and excitation, not a resnet50; "));
  TorchContent deep = names_of("resnet50");
  add_tensor(deep, "conv1.0.weight", {1}, {1});
  EXPECT_TRUE(holds(refusal(deep, "resnet50"), ": holds a ResNet with a deep stem"));
  TorchContent wide;
  for (const NetworkTensor& tensor : network_tensors("resnet50")) {
    const bool second = tensor.name == "layer1.0.conv2.weight";
    const std::vector<std::int64_t> dims =
        second ? std::vector<std::int64_t>{128, 128} : std::vector<std::int64_t>{1};
    add_tensor(wide, tensor.name, dims, std::vector<float>(second ? 128 * 128 : 1, 1.0F));
  }
  EXPECT_TRUE(holds(refusal(wide, "resnet50"),
                    ": holds a wide ResNet-50 (128 channels instead of 64), not a resnet50; "));
}

// A file without values, whose tensors are views of one stretch of zeros.
TensorFile zeros_of(const std::string& arch, const Rename& rename = std::identity()) {
  static const std::vector<std::byte> zeros(std::size_t{2048} * 2048 * 4);
  TensorFile file;
  file.path = "r.pth";
  for (const NetworkTensor& of : network_tensors(arch)) {
    StoredTensor tensor;
    tensor.name = rename(of.name);
    tensor.dims = of.dims;
    if (of.kind == NetworkTensor::Kind::kCounter) tensor.type = ElementType::kI64;
    tensor.bytes = std::span(zeros).first(static_cast<std::size_t>(tensor.elements()) *
                                          (tensor.type == ElementType::kI64 ? 8 : 4));
    file.tensors.push_back(tensor);
  }
  return file;
}

// Whichever tensor is missing or of another shape, the network must be recognised by the others.
TEST_F(ForeignWeights, ASingleTensorThatIsMissingIsNamed) {
  CounterRandom random(random_seed(), 0, 0);
  for (const std::string& arch : network_names()) {
    const TensorFile whole = zeros_of(arch);
    const std::string refused = "r.pth: its tensors are not those of " +
                                std::string(arch.starts_with('i') ? "an " : "a ") + arch + ": 1 ";
    const std::vector<NetworkTensor> tensors = network_tensors(arch);
    for (int round = 0; round < 40; ++round) {
      const auto i = static_cast<std::size_t>(random.below(std::ssize(tensors)));
      if (tensors[i].kind == NetworkTensor::Kind::kCounter) continue;
      TensorFile file = whole;
      file.tensors.erase(file.tensors.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(
          message_of<InputError>([&] { network_weights(file); }),
          refused + "missing: " + tensors[i].name + "; `convert r.pth --list` shows what it holds");
      file = whole;
      file.tensors[i].dims[0] = 1;
      EXPECT_TRUE(holds(message_of<InputError>([&] { network_weights(file); }),
                        refused + "of another shape or type: " + tensors[i].name + " F32 "));
    }
  }
}

TEST_F(ForeignWeights, AFewTensorsThatAreMissingAreNamed) {
  const auto without = [](TensorFile file, const std::vector<std::string>& names) {
    std::erase_if(file.tensors, [&](const StoredTensor& tensor) {
      return std::ranges::any_of(
          names, [&](const std::string& name) { return tensor.name.ends_with(name); });
    });
    return message_of<InputError>([&] { network_weights(file); });
  };
  const std::vector<std::string> three = {"layer1.0.conv1.weight", "layer1.0.conv3.weight",
                                          "layer3.2.conv1.weight"};
  for (const std::string front : {"", "module.", "backbone."}) {
    EXPECT_EQ(
        without(zeros_of("resnet50", [&](const auto& name) { return front + name; }), three),
        "r.pth: its tensors are not those of a resnet50: 3 missing: layer1.0.conv1.weight, "
        "layer1.0.conv3.weight, layer3.2.conv1.weight; `convert r.pth --list` shows what it holds");
  }
  EXPECT_TRUE(holds(without(zeros_of("resnet18", as_transformers),
                            {"stages.0.layers.0.layer.0.convolution.weight"}),
                    "those of a resnet18: 1 missing: layer1.0.conv1.weight; "));
  std::vector<std::string> four = three;
  four.emplace_back("layer2.0.conv2.weight");
  EXPECT_TRUE(
      holds(without(zeros_of("resnet50"), four), "holds a ResNet of 0+4+2+3 blocks; resnet20, "));
  // A larger network holds all names of a smaller one.
  TensorFile deeper = zeros_of("resnet18");
  for (const char* name : {"layer1.2.conv1.weight", "layer2.2.conv1.weight"}) {
    deeper.tensors.push_back(deeper.tensors.front());
    deeper.tensors.back().name = name;
  }
  EXPECT_TRUE(holds(without(deeper, {"layer4.1.conv2.weight"}),
                    "holds a ResNet of 3+3+2+2 blocks; resnet20, "));
}

TEST_F(ForeignWeights, Case26OtherNetworksAreNamed) {
  const auto without = [&](const std::string& arch, const std::string& beginning) {
    TorchContent content = names_of(arch);
    std::erase_if(content.tensors,
                  [&](const auto& tensor) { return tensor.name.starts_with(beginning); });
    return content;
  };
  EXPECT_TRUE(holds(refusal(without("resnet50", "layer4.2")), "a ResNet of 3+4+6+2 blocks"));
  TorchContent deep = names_of("resnet50");
  ASSERT_EQ(deep.tensors[0].name, "conv1.weight");
  deep.tensors[0].name = "conv1.0.weight";
  EXPECT_TRUE(holds(refusal(deep), "deep stem"));
  TorchContent squeezed = names_of("resnet50");
  add_tensor(squeezed, "layer1.0.se.fc1.weight", {1}, {1});
  EXPECT_TRUE(holds(refusal(squeezed), "squeeze and excitation"));
  TorchContent none;
  add_tensor(none, "visual.proj", {2}, {1, 2});
  EXPECT_TRUE(holds(refusal(none), "no network whose names are known"));
}

TEST_F(ForeignWeights, Case29FindingsNameWhatNoNetworkHolds) {
  TorchContent content = torch_network("resnet20");
  const float not_a_number = std::nanf(""), negative = -1, large = -1.5e12F, allowed = 1e12F;
  for (const auto& tensor : content.tensors) {
    std::string& bytes = content.storages[tensor.storage].bytes;
    if (tensor.name == "conv1.weight") {
      std::memcpy(bytes.data(), &large, 4);
      std::memcpy(bytes.data() + 4, &allowed, 4);
    }
    // A network that diverges may still have learnt statistics of any size.
    if (tensor.name == "bn1.running_mean") std::memcpy(bytes.data(), &large, 4);
    if (tensor.name == "bn1.weight") std::memcpy(bytes.data() + 8, &not_a_number, 4);
    if (tensor.name == "bn1.running_var") std::memcpy(bytes.data(), &negative, 4);
  }
  const std::vector<std::string> found = findings(read(content));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], "conv1.weight: 1 value beyond 1e+12");
  EXPECT_EQ(found[1], "bn1.weight: 1 value not finite");
  EXPECT_EQ(found[2], "bn1.running_var: 1 value negative");
}

// Whoever gives another program's file has no earlier checkpoint of it.
TEST_F(ForeignWeights, WhatIsNoNumberInAnotherProgramsFileIsNoCheckpoints) {
  TorchContent content = torch_network("resnet20");
  const float not_a_number = std::nanf("");
  for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    std::memcpy(content.storages[i].bytes.data(), &not_a_number, sizeof(not_a_number));
    folder_.write("w.pth", torch_zip(content));
    const std::string path = in("w.pth");
    std::vector<std::string> said;
    EXPECT_EQ(message_of<InputError>([&] { open_weights(path, "", said); }),
              path + (i == 0 ? ": 1 tensor" : ": 2 tensors") +
                  " with values that no training can begin with (conv1.weight: 1 value not finite" +
                  (i == 0 ? "" : ", ...") + "); take another file");
  }
}

// .pth -> ours -> safetensors -> ours: the same bits, and the same file.
TEST_F(ForeignWeights, ARoundTripKeepsEveryBit) {
  const NetworkWeights first = read(torch_network("resnet20", 9));
  const Checkpoint ours("ours", checkpoint_bytes(first));
  EXPECT_FALSE(ours.has_run());
  const std::vector<std::byte> exported = safetensors_bytes(network_weights(ours));
  folder_.write("r.safetensors", exported);
  NetworkWeights again = network_weights(read_tensor_file(in("r.safetensors")));
  expect_whole(again, "resnet20");
  EXPECT_EQ(again.find("fc.weight")->dims, (std::vector<std::int64_t>{9, 64}));
  for (const NetworkWeights::Tensor& tensor : first.tensors) {
    const NetworkWeights::Tensor* now = again.find(tensor.name);
    ASSERT_NE(now, nullptr) << tensor.name;
    EXPECT_EQ(now->dims, tensor.dims) << tensor.name;
    EXPECT_EQ(now->count, tensor.count) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(now->values)),
                                   std::as_bytes(std::span(tensor.values))))
        << tensor.name;
  }
  again.model.source_sha256 = first.model.source_sha256;  // it now names r.safetensors
  EXPECT_TRUE(safetensors_bytes(again) == exported);
}

// The check of a written file must see a single changed value, even in a tensor that is read in
// several blocks, and a changed description.
TEST_F(ForeignWeights, WhatWasWrittenOtherwiseIsSeen) {
  constexpr std::size_t kClasses = 20'000;  // 5 MB of weights
  NetworkWeights weights = read(torch_network("resnet20", kClasses));
  std::vector<float> values(kClasses * 64);
  std::iota(values.begin(), values.end(), 1.0F);
  const auto classifier = std::find_if(weights.tensors.begin(), weights.tensors.end(),
                                       [](const auto& t) { return t.name == "fc.weight"; });
  ASSERT_NE(classifier, weights.tensors.end());
  classifier->values = values;
  const std::vector<std::byte> checkpoint = checkpoint_bytes(weights);
  const std::vector<std::byte> safetensors = safetensors_bytes(weights);
  const auto differences = [&] {
    return message_of<InputError>([&] { check_checkpoint(checkpoint, weights, "w.h5"); }) +
           message_of<InputError>([&] { check_safetensors(safetensors, weights, "w.st"); });
  };
  EXPECT_NO_THROW(check_checkpoint(checkpoint, weights, "w.h5"));
  EXPECT_NO_THROW(check_safetensors(safetensors, weights, "w.st"));
  for (const std::size_t changed : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
    values[changed] += 1;
    EXPECT_TRUE(holds(differences(), "w.h5: fc.weight was not written as it was read"));
    EXPECT_TRUE(holds(differences(), "w.st: fc.weight was not written as it was read"));
    values[changed] -= 1;
  }
  weights.model.crop += 1;
  EXPECT_TRUE(holds(differences(), "w.h5: the description was not"));
  EXPECT_TRUE(holds(differences(), "w.st: the description was not"));
}

// sha256() must be the sum of the file on disk, not of what it is converted to for reading.
TEST_F(ForeignWeights, TheSha256IsThatOfTheFile) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = safetensors_bytes(read(torch_network("resnet20")));
  folder.write("w.safetensors", bytes);
  std::vector<std::string> said;
  EXPECT_EQ(open_weights(folder.in("w.safetensors"), "", said).sha256(),
            hexadecimal(sha256(bytes)));
}

// The HDF5 library cuts off the seal, as unknown bytes, when it opens a checkpoint for writing.
TEST_F(ForeignWeights, ACheckpointThatLostItsSealIsNamed) {
  std::vector<std::byte> bytes = checkpoint_bytes(read(torch_network("resnet20")));
  bytes.resize(bytes.size() - kSealBytes);
  folder_.write("o.h5", bytes);
  const std::string path = in("o.h5");
  EXPECT_TRUE(holds(message_of<InputError>([&] { read_tensor_file(path); }),
                    path + ": is a checkpoint whose seal is gone: another program opened it"));
}

// A valid seal says that a file is whole, not who wrote it, so its tensors must be checked.
TEST_F(ForeignWeights, ASealedFileHoldsTheTensorsOfItsNetwork) {
  TorchContent content = torch_network("resnet20", 5);
  add_tensor(content, "embedding.weight", {4, 64}, std::vector<float>(256, 0.5F));
  add_tensor(content, "embedding.bias", {4}, {1, 2, 3, 4});
  const NetworkWeights first = read(content);
  const NetworkWeights again = network_weights(Checkpoint("ours.h5", checkpoint_bytes(first)));
  ASSERT_EQ(again.tensors.size(), first.tensors.size());
  for (std::size_t i = 0; i < first.tensors.size(); ++i) {
    EXPECT_EQ(again.tensors[i].name, first.tensors[i].name);
    EXPECT_EQ(again.tensors[i].dims, first.tensors[i].dims);
  }
  const auto refused = [&](const std::function<void(NetworkWeights&)>& change) {
    NetworkWeights changed = first;
    change(changed);
    const Checkpoint ours("ours.h5", checkpoint_bytes(changed));
    const std::string message = message_of<InputError>([&] { network_weights(ours); });
    EXPECT_TRUE(message.starts_with("ours.h5: ")) << message;
    return message;
  };
  const std::vector<float> zeros(16, 0.0F);
  const auto with_dims = [&](const std::string& name, const std::vector<std::int64_t>& dims) {
    return refused([&](NetworkWeights& weights) {
      for (NetworkWeights::Tensor& tensor : weights.tensors) {
        if (tensor.name == name) tensor = {name, dims, zeros, 3, nullptr};
      }
    });
  };
  const auto without = [&](const std::string& beginning) {
    return refused([&](NetworkWeights& weights) {
      std::erase_if(weights.tensors,
                    [&](const auto& tensor) { return tensor.name.starts_with(beginning); });
    });
  };
  EXPECT_TRUE(holds(with_dims("conv1.weight", {}), "conv1.weight [] where [16, 3, 3, 3]"));
  EXPECT_TRUE(holds(with_dims("fc.weight", {}), "fc.weight [] where [1, 64] is expected"));
  EXPECT_TRUE(holds(with_dims("fc.weight", {2, 8}), "fc.weight [2, 8] where [2, 64]"));
  EXPECT_TRUE(holds(with_dims("embedding.weight", {}), "embedding.weight [] where [4, 64]"));
  EXPECT_TRUE(holds(with_dims("bn1.weight", {4, 4}), "bn1.weight [4, 4] where [16] is expected"));
  EXPECT_TRUE(holds(with_dims("bn1.num_batches_tracked", {2}), "has shape [2] where []"));
  EXPECT_TRUE(holds(without("bn1.bias"), "1 missing: bn1.bias"));
  EXPECT_TRUE(holds(without("bn1.num_batches_tracked"), "1 missing: bn1.num_batches_tracked"));
  EXPECT_TRUE(holds(without("fc.bias"), "1 missing: fc.bias"));
  EXPECT_TRUE(holds(without("embedding."), "2 missing: embedding.weight, embedding.bias"));
  EXPECT_TRUE(holds(refused([&](NetworkWeights& weights) {
                      weights.tensors.push_back({"conv9.weight", {16}, zeros, 0, nullptr});
                    }),
                    "1 not expected: conv9.weight"));
  EXPECT_TRUE(holds(refused([](NetworkWeights& weights) { weights.model.arch = "resnet19"; }),
                    "its network is 'resnet19', known are resnet20, "));
}

// Auxiliary classifiers must be reported and left out; Inception has its own size of images.
TEST_F(ForeignWeights, OfGoogLeNetAndInceptionAuxiliaryClassifiersAreLeft) {
  TorchContent google = torch_network("googlenet", 5);
  add_tensor(google, "aux1.fc2.weight", {2, 3}, std::vector<float>(6, 1.0F));
  const NetworkWeights first = read(google);
  expect_whole(first, "googlenet");
  ASSERT_EQ(first.ignored, std::vector<std::string>{"aux1.fc2.weight"});
  EXPECT_TRUE(holds(first.notes.at(0), "left out: 1 tensor of auxiliary classifiers"));
  EXPECT_EQ(first.model.crop, 224);
  TorchContent inception = torch_network("inception_v3");
  add_tensor(inception, "AuxLogits.fc.weight", {2, 3}, std::vector<float>(6, 1.0F));
  const NetworkWeights second = read(inception);
  expect_whole(second, "inception_v3");
  EXPECT_TRUE(holds(second.notes.at(0), "auxiliary"));
  EXPECT_EQ(second.model.crop, 299);
  EXPECT_EQ(second.model.resize, 342);
  EXPECT_EQ(second.model.input_mean[0], 0.485);
  const NetworkWeights small = read(torch_network("resnet20"));
  EXPECT_EQ(small.model.crop, 32);
  EXPECT_EQ(small.model.resize, 37);
}

// What a file says about its images must be adopted, or refused if images cannot be prepared so.
TEST_F(ForeignWeights, ImagesAreAsTheFileWantsThem) {
  const NetworkWeights first = read(torch_network("resnet20"));
  const auto again = [&](const std::function<void(ModelDescription&)>& change) {
    NetworkWeights changed = first;
    change(changed.model);
    folder_.write("c", safetensors_bytes(changed));
    return read_tensor_file(in("c"));
  };
  const NetworkWeights kept = network_weights(again([](ModelDescription& model) {
    model.input_mean = {0.1, 0.2, 0.3};
    model.input_std = {0.4, 0.5, 0.6};
    model.resize = 232;
    model.crop = 192;
    model.stride_in_1x1 = true;
  }));
  EXPECT_EQ(kept.model.input_mean[2], 0.3);
  EXPECT_EQ(kept.model.input_std[0], 0.4);
  EXPECT_EQ(kept.model.resize, 232);
  EXPECT_EQ(kept.model.crop, 192);
  EXPECT_TRUE(kept.model.stride_in_1x1);
  const auto refused = [&](const std::function<void(ModelDescription&)>& change) {
    const TensorFile file = again(change);
    return message_of<InputError>([&] { network_weights(file); });
  };
  EXPECT_TRUE(holds(refused([](auto& model) { model.channel_order = "BGR"; }), "channel_order"));
  EXPECT_TRUE(holds(refused([](auto& model) { model.input_scale = 1; }), "input_scale"));
  EXPECT_TRUE(holds(refused([](auto& model) { model.interpolation = "bicubic"; }),
                    "interpolation is bicubic, expected bilinear"));
  EXPECT_TRUE(holds(refused([](auto& model) { model.resize = 20; }), "resize"));
}

TEST_F(ForeignWeights, ImagesTooSmallForTheNetworkAreRefused) {
  NetworkWeights weights = read(torch_network("googlenet"));
  weights.model.crop = least_image_size("googlenet") - 1;
  const std::string why = ": attribute crop is 30, but googlenet takes images of 31 or more";
  folder_.write("c", safetensors_bytes(weights));
  const TensorFile file = read_tensor_file(in("c"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { network_weights(file); }), why));
  const Checkpoint checkpoint("c.h5", checkpoint_bytes(weights));
  EXPECT_TRUE(holds(message_of<InputError>([&] { network_weights(checkpoint); }), "c.h5" + why));
  weights.model.crop = least_image_size("googlenet");
  EXPECT_NO_THROW(check_network(weights.model, "c.h5"));
}

// torchvision's files say nothing about their images, but are recognised by their sums. GoogLeNet's
// and Inception-v3's have the input statistics of torchvision's transform_input.
TEST_F(ForeignWeights, PublishedFilesAreKnownByTheirSum) {
  struct Published {
    const char* arch;
    const char* digest;
    std::int64_t resize, crop;
    double mean, std;
  };
  for (const Published& of : {Published{"resnet18", "", 256, 224, 0.485, 0.225},
                              {"resnet18", "11ad3fa6", 232, 224, 0.485, 0.225},
                              {"googlenet", "", 256, 224, 0.485, 0.225},
                              {"googlenet", "1378be20", 256, 224, 0.5, 0.5},
                              {"inception_v3", "0cc3c7bd", 342, 299, 0.5, 0.5},
                              {"inception_v3", "1a9a5a14", 342, 299, 0.5, 0.5}}) {
    SCOPED_TRACE(fmt::format("{} {}", of.arch, of.digest));
    const std::string name = std::string(of.arch) + ".pth";
    if (!std::filesystem::exists(folder_.path() / name)) {
      folder_.write(name, torch_zip(torch_network(of.arch)));
    }
    TensorFile file = read_tensor_file(in(name));
    file.sha256.replace(0, std::strlen(of.digest), of.digest);
    const NetworkWeights weights = network_weights(file);
    const ModelDescription& model = weights.model;
    // A file that was saved again has another sum and cannot be recognised.
    const bool unsaid = *of.digest == '\0' && std::string_view(of.arch) != "resnet18";
    EXPECT_EQ(holds(weights.unsaid, "--input-mean 0.5"), unsaid);
    EXPECT_EQ(model.resize, of.resize);
    EXPECT_EQ(model.crop, of.crop);
    EXPECT_EQ(model.input_mean[0], of.mean);
    EXPECT_EQ(model.input_std[2], of.std);
  }
}

}  // namespace
}  // namespace rk
