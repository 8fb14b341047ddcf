#include "tests/support/weights/keras_writer.h"
#include "engine/base/integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace rk {
namespace {

constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};

std::string keras_name(const KerasLayer& layer, KerasGeneration generation, bool norm) {
  if (generation == KerasGeneration::kFirst || generation == KerasGeneration::kFirstNumbered) {
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

class KerasFile {
 public:
  KerasFile(KerasGeneration generation, const KerasValues& values)
      : generation_(generation), values_(values) {}

  std::vector<std::byte> write(const std::function<void(Hdf5Writer&)>& further) {
    int place = 0;
    for (const KerasLayer& layer : keras_layers()) {
      add(layer, place, false,
          {{"kernel", {layer.side, layer.side, layer.in, layer.out}}, {"bias", {layer.out}}});
      add(layer, place, true,
          {{"gamma", {layer.out}},
           {"beta", {layer.out}},
           {"mean", {layer.out}},
           {"variance", {layer.out}}});
      ++place;
    }
    further(writer_);
    writer_.set_attribute("/", "backend", "tensorflow");
    return writer_.finish();
  }

 private:
  using Part = std::pair<const char*, std::vector<std::int64_t>>;

  std::string path(const KerasLayer& layer, int place, bool norm, const std::string& part,
                   int number) const {
    const std::string name = keras_name(layer, generation_, norm);
    if (generation_ == KerasGeneration::kFirst) {
      const std::string leaf = part == "kernel"     ? "W"
                               : part == "bias"     ? "b"
                               : part == "mean"     ? "running_mean"
                               : part == "variance" ? "running_std"
                                                    : part;
      return fmt::format("/{0}/{0}_{1}:0", name, leaf);
    }
    const std::string leaf = part == "mean"       ? "moving_mean"
                             : part == "variance" ? "moving_variance"
                                                  : part;
    if (generation_ == KerasGeneration::kFirstNumbered) {
      return fmt::format("/{0}/{0}_1/{1}:0", name, leaf);
    }
    const bool inside = generation_ == KerasGeneration::kSecondInside;
    if (inside || generation_ == KerasGeneration::kSecond) {
      return fmt::format("/model_weights/{}/{}/{}:0", inside ? "resnet50" : name, name, leaf);
    }
    return numbered_path(norm ? "batch_normalization" : "conv2d", place, number);
  }

  // Of Keras 2.12 and later, which names layers by their classes.
  std::string numbered_path(const std::string& kind, int place, int number) const {
    const auto is = [&](std::initializer_list<KerasGeneration> any) {
      return std::ranges::find(any, generation_) != any.end();
    };
    using enum KerasGeneration;
    const bool doubled = is({kDoubledInside, kDoubledOnWindows});
    const std::string container =
        doubled || is({kDependencies}) ? "_layer_checkpoint_dependencies" : "layers";
    if (doubled) place *= 2;
    std::string layer =
        fmt::format("{}/{}{}", container, kind, place == 0 ? "" : fmt::format("_{}", place));
    if (is({kThirdCountedInside, kDoubledInside})) layer = container + "/functional/" + layer;
    if (is({kDoubledOnWindows})) std::ranges::replace(layer, '/', '\\');
    return fmt::format("/{}/vars/{}", layer, number);
  }

  void add(const KerasLayer& layer, int place, bool norm, const std::vector<Part>& parts) {
    int number = 0;
    for (const auto& [part, dims] : parts) {
      const std::vector<float> values =
          values_(norm ? layer.normalisation : layer.convolution, part, dims);
      const std::string where = path(layer, place, norm, part, number++);
      writer_.write(where, dims, values.data());
      if (generation_ == KerasGeneration::kThirdNamed) {
        writer_.set_attribute(where.substr(0, where.rfind('/')), "name",
                              keras_name(layer, generation_, norm));
      }
    }
  }

  KerasGeneration generation_;
  const KerasValues& values_;
  Hdf5Writer writer_;
};

}  // namespace

std::vector<KerasLayer> keras_layers() {
  std::vector<KerasLayer> all = {{1, 0, 1, "conv1", "bn1", 3, 64, 7}};
  std::int64_t in = 64;
  for (int stage = 2; stage <= 5; ++stage) {
    const std::int64_t width = std::int64_t{16} << stage;
    for (int block = 0; block < kBlocks[at(stage - 2)]; ++block) {
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

std::vector<std::byte> keras_resnet50(KerasGeneration generation, const KerasValues& values,
                                      const std::function<void(Hdf5Writer&)>& further) {
  return KerasFile(generation, values).write(further);
}

}  // namespace rk
