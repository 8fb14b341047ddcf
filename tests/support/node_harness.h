// Runs one recorded node by hand in memory that shows every mistake: sentinels around each tensor,
// outputs, gradients, saved and working memory filled with NaN, and everything that the node did
// not claim for backward poisoned after forward. Tensors go in and out in the interface's order
// (NHWC, OIHW).
#pragma once

#include "engine/tape/parameters.h"
#include "engine/tape/program.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

// Stands for whatever computed the input of a node that is tested alone.
class SourceNode final : public Node {
 public:
  // block: how many channels of a pixel lie side by side; 0: all of them.
  explicit SourceNode(std::int64_t block = 0) : Node("source"), block_(block) {}
  std::string_view kind() const override { return "source"; }
  void choose_layouts(ChannelBlocks& blocks) override {
    if (block_ > 0) blocks.output = block_;
  }
  void forward() override {}
  void backward() override {}

 private:
  std::int64_t block_;
};

// Memory between sentinels; starts as NaN.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::int64_t floats);
  float* data() const { return memory_.as<float>() + kGuard; }
  std::span<float> values() const { return {data(), static_cast<std::size_t>(floats_)}; }
  void poison() const;
  bool intact() const;  // nothing was written outside values()

 private:
  static constexpr std::int64_t kGuard = 64;  // floats: keeps the alignment that a Buffer gives
  std::int64_t floats_;
  Buffer memory_;
};

// What the memory of the inputs' gradients holds when backward starts.
enum class EdgeMode {
  kOverwrite,   // NaN: the node must write it
  kAccumulate,  // another node's gradient: the node must add to it
  kInPlace,     // the first input that allows it shares the output's gradient; others hold NaN
};

class NodeHarness {
 public:
  struct Source {
    Shape shape;
    std::int64_t block = 0;  // channels side by side; 0: all of them
    bool wants_gradient = true;
  };
  using Record = std::function<TensorId(Program&, const std::vector<TensorId>&)>;

  // Whether the recorded node reads the sources as they lie: one in a layout that it does not read
  // would be reordered by a node of its own.
  static bool reads(int threads, const std::vector<Source>& sources, const Record& record);

  // `record` appends exactly one node, which reads the sources in their order and as they lie.
  NodeHarness(int threads, const std::vector<Source>& sources, const Record& record,
              EdgeMode mode = EdgeMode::kOverwrite);
  ~NodeHarness();

  Parameters& parameters() { return parameters_; }
  const Shape& output_shape() const;
  const Shape& input_shape(std::size_t i) const;
  bool has_in_place_input() const;

  std::vector<float> forward(const std::vector<std::vector<float>>& inputs);
  // Returns the gradients of the inputs (empty where none is wanted); those of the parameters are
  // in parameters().gradients(). `initial`: what the inputs' hold before, for kAccumulate.
  std::vector<std::vector<float>> backward(const std::vector<float>& output_gradient,
                                           const std::vector<std::vector<float>>& initial = {});

 private:
  void check() const;

  Context context_;
  Parameters parameters_;
  Program program_;
  EdgeMode mode_;
  Node* node_ = nullptr;
  std::vector<TensorId> inputs_;
  TensorId output_ = -1;
  std::vector<NodeInput> claims_;
  std::vector<GuardedMemory> values_, gradients_;
  std::vector<GuardedMemory> own_;  // output, its gradient, saved, workspace
  NodeMemory memory_;
};

// Sum of output * weights in double: one number that depends on every output.
double weigh(const std::vector<float>& output, const std::vector<float>& weights);

// Numbers in [-1, 1) that are a function of (seed, index).
std::vector<float> noise(std::int64_t count, std::uint64_t seed);

}  // namespace rk
