#include "weights/foreign/resnet_names.h"

#include "engine/base/integers.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

namespace rk {
namespace {

// Reads a name from front to back; after a required piece is missing, the scan stays bad.
class NameScan {
 public:
  explicit NameScan(std::string_view text) : rest_(text) {}

  bool eat(std::string_view piece) {
    if (!rest_.starts_with(piece)) return false;
    rest_.remove_prefix(piece.size());
    return true;
  }
  void need(std::string_view piece) { good_ = eat(piece) && good_; }
  int number() {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    good_ = good_ && error == std::errc() && value >= 0 && value < 1000;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  // 0 for 'a'.
  int letter() {
    good_ = good_ && !rest_.empty() && rest_[0] >= 'a' && rest_[0] <= 'z';
    if (!good_) return 0;
    const int value = rest_[0] - 'a';
    rest_.remove_prefix(1);
    return value;
  }
  bool good() const { return good_; }
  bool ended() const { return good_ && rest_.empty(); }
  std::string rest() const { return std::string(rest_); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};

// Stage 2 to 5, block from 0, convolution 0 (the shortcut) to 3.
std::string keras_place(int stage, int block, int convolution, bool norm) {
  const std::string front = fmt::format("layer{}.{}.", stage - 1, block);
  if (convolution == 0) return front + (norm ? "downsample.1" : "downsample.0");
  return fmt::format("{}{}{}", front, norm ? "bn" : "conv", convolution);
}

std::optional<std::string> placed(int stage, int block, int convolution, bool norm) {
  if (stage < 2 || stage > 5 || block < 0 || convolution < 0 || convolution > 3)
    return std::nullopt;
  return keras_place(stage, block, convolution, norm);
}

// "res2a_branch2b", "bn2a_branch1"
std::optional<std::string> first_generation(const std::string& layer) {
  NameScan scan(layer);
  const bool norm = scan.eat("bn");
  if (!norm) scan.need("res");
  const int stage = scan.number();
  const int block = scan.letter();
  scan.need("_branch");
  if (scan.eat("1")) {
    if (scan.ended()) return placed(stage, block, 0, norm);
    return std::nullopt;
  }
  scan.need("2");
  const int convolution = scan.letter() + 1;
  if (!scan.ended()) return std::nullopt;
  return placed(stage, block, convolution, norm);
}

// "conv2_block1_0_conv", "conv2_block1_3_bn"
std::optional<std::string> second_generation(const std::string& layer) {
  NameScan scan(layer);
  scan.need("conv");
  const int stage = scan.number();
  scan.need("_block");
  const int block = scan.number() - 1;
  scan.need("_");
  const int convolution = scan.number();
  const bool norm = scan.eat("_bn");
  if (!norm) scan.need("_conv");
  if (!scan.ended()) return std::nullopt;
  return placed(stage, block, convolution, norm);
}

// In layer order: the shortcut of a stage's first block comes before its last convolution.
std::vector<std::string> in_order(const char* first, bool norm) {
  std::vector<std::string> names = {first};
  for (int stage = 2; stage <= 5; ++stage) {
    for (int block = 0; block < kBlocks[at(stage - 2)]; ++block) {
      names.push_back(keras_place(stage, block, 1, norm));
      names.push_back(keras_place(stage, block, 2, norm));
      if (block == 0) names.push_back(keras_place(stage, block, 0, norm));
      names.push_back(keras_place(stage, block, 3, norm));
    }
  }
  return names;
}

}  // namespace

std::optional<std::string> name_of_transformers(const std::string& name) {
  NameScan scan(name);
  scan.eat("resnet.");
  if (scan.eat("classifier.1.")) return "fc." + scan.rest();
  if (scan.eat("embedder.embedder.")) {
    if (scan.eat("convolution.")) return "conv1." + scan.rest();
    if (scan.eat("normalization.")) return "bn1." + scan.rest();
    return std::nullopt;
  }
  scan.need("encoder.stages.");
  const int stage = scan.number() + 1;
  scan.need(".layers.");
  const int block = scan.number();
  scan.need(".");
  if (!scan.good()) return std::nullopt;
  const std::string front = fmt::format("layer{}.{}.", stage, block);
  std::string further = front + scan.rest();  // of a part that torchvision's network lacks
  if (scan.eat("shortcut.")) {
    if (scan.eat("convolution.")) return front + "downsample.0." + scan.rest();
    if (scan.eat("normalization.")) return front + "downsample.1." + scan.rest();
    return further;
  }
  scan.need("layer.");
  const int layer = scan.number() + 1;
  if (!scan.good()) return further;
  if (scan.eat(".convolution.")) return fmt::format("{}conv{}.{}", front, layer, scan.rest());
  if (scan.eat(".normalization.")) return fmt::format("{}bn{}.{}", front, layer, scan.rest());
  return further;
}

std::optional<std::string> name_of_nvidia(const std::string& name) {
  NameScan scan(name);
  scan.need("layers.");
  const int stage = scan.number() + 1;
  scan.need(".");
  if (!scan.good()) return std::nullopt;
  return fmt::format("layer{}.{}", stage, scan.rest());
}

std::optional<std::string> name_of_keras_layer(const std::string& layer) {
  if (layer == "conv1" || layer == "conv1_conv") return "conv1";
  if (layer == "bn_conv1" || layer == "conv1_bn") return "bn1";
  if (layer == "fc1000" || layer == "predictions") return "fc";
  if (auto name = second_generation(layer)) return name;
  return first_generation(layer);
}

std::vector<std::string> keras_convolutions() { return in_order("conv1", false); }
std::vector<std::string> keras_normalisations() { return in_order("bn1", true); }

}  // namespace rk
