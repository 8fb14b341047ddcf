// What the convolutions of a program on a GPU compute with, made of the parameters by one kernel
// (kernels/blocks/weights_block.h) in front of the first of them, once a pass forward.
//
// A convolution adds its filter when it is bound and calls prepare() in front of its own work; the
// first to have added launches for all. What is prepared must therefore lie in memory that is the
// convolution's from the start of the pass (NodeClaims::saved_from_start).
#pragma once

#include "kernels/blocks/weights_block.h"
#include "layers/conv2d.h"

#include <memory>
#include <vector>

namespace rk::gpu {

inline FilterShape filter_shape(const ConvolutionGeometry& geometry) {
  const Shape weight = geometry.weight_shape();
  return {.outputs = static_cast<int>(weight[0]),
          .taps = static_cast<int>(weight[2] * weight[3]),
          .inputs = static_cast<int>(weight[1]),
          .padded_inputs = static_cast<int>(geometry.x[3])};
}

template <class T> class GpuWeights {
 public:
  explicit GpuWeights(const Context& context) : context_(context) {}

  void add(const Node& node, const Filter<T>& filter);
  void prepare(const Node& node) const;

 private:
  const Context& context_;
  const Node* first_ = nullptr;
  std::vector<Filter<T>> filters_;
  std::vector<FilterPart> parts_;
  Memory device_filters_, device_parts_;
};

// What convolutions have beside their geometry: the weights of their program.
template <class T> class UsesWeights {
 public:
  // Those of the convolutions that were appended before; the first makes them.
  explicit UsesWeights(const Program& program);
  virtual ~UsesWeights() = default;

 protected:
  std::shared_ptr<GpuWeights<T>> weights_;
};

}  // namespace rk::gpu
