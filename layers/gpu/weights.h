// What the convolutions of a program on a GPU compute with: the parameters in T, a frozen batch
// normalisation folded in where there is one, made by one kernel in front of every pass forward
// (kernels/blocks/weights_block.h).
#pragma once

#include "engine/tape/program.h"
#include "kernels/blocks/weights_block.h"
#include "layers/conv2d.h"

#include <vector>

namespace rk::gpu {

inline FilterShape filter_shape(const ConvolutionGeometry& geometry) {
  const Shape weight = geometry.weight_shape();
  return {.outputs = static_cast<int>(weight[0]),
          .taps = static_cast<int>(weight[2] * weight[3]),
          .inputs = static_cast<int>(weight[1]),
          .padded_inputs = static_cast<int>(geometry.x[3])};
}

template <class T> class CastWeights final : public Prologue {
 public:
  explicit CastWeights(const Context& context) : context_(context) {}
  // The program's; the first convolution that asks makes it.
  static CastWeights& of(Program& program);

  // By Node::plan(): what to make of a weight. Returns its number; where it goes is filled in.
  int add(const Filter<T>& filter);
  // With its places, from Node::bind() on.
  const Filter<T>& operator[](int number) const {
    return filters_[static_cast<std::size_t>(number)];
  }

  std::size_t plan() override;
  void bind(void* memory) override;
  void forward() override;

 private:
  const Context& context_;
  std::vector<Filter<T>> filters_;
  std::vector<FilterPart> parts_;
  Memory device_filters_, device_parts_;
};

}  // namespace rk::gpu
