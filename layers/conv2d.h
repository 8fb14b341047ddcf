// 2-D convolution (cross-correlation) without bias, as torchvision's networks use it.
//
//   x (N, H, W, C) -> y (N, OH, OW, O),  OH = (H + 2 pad - kernel) / stride + 1
//   y[n,oh,ow,o] = sum_{c,kh,kw} x[n, oh*stride+kh-pad, ow*stride+kw-pad, c] * w[o,c,kh,kw]
// Parameter `<name>.weight`, canonical order OIHW, initialised as in torchvision (He et al. 2015,
// normal, fan out). Accumulates in float32; no Winograd, so that results keep float32's accuracy.
#pragma once

#include "engine/tape/program.h"

#include <array>
#include <cstdint>

namespace rk {

struct Conv2dOptions {
  std::int64_t out_channels = 0;
  std::array<std::int64_t, 2> kernel{1, 1};  // height, width
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};
  // Input channels of the weight, if x has additional channels of zeros (images on a GPU); 0: as
  // many as x.
  std::int64_t in_channels = 0;
};

TensorId conv2d(Program& program, TensorId x, const std::string& name,
                const Conv2dOptions& options);

// The shapes and layouts a convolution computes with, derived from its input; shared with
// conv_bn.h.
struct ConvolutionGeometry {
  Shape x, y;    // (N, H, W, C), x as stored
  Shape weight;  // OIHW, the parameter's
  // On a GPU, if x is images in cells of pixels (SpaceToDepth): pixels along a cell's side. The
  // options are then those of the convolution over the cells.
  std::int64_t cell = 1;
  std::int64_t x_block = 0;  // adjacent channels, engine/tape/layout.h
  std::int64_t y_block = 0;
  // If not 0: computed in blocks of this many channels, with the last block of x or y padded with
  // zeros; a tensor stored otherwise is reordered before or after.
  std::int64_t block = 0;
  // On a GPU, if y lies in a larger tensor: elements from one pixel of y to the next; else 0.
  std::int64_t y_row_stride = 0;
  Conv2dOptions options;
  WeightOrder order;
};

// A node that runs a convolution, alone (conv2d) or with a batch normalisation folded in
// (conv_bn.h).
class ConvolutionNode : public Node {
 public:
  // Declares the weight `<convolution>.weight`.
  ConvolutionNode(std::string name, Program& program, const std::string& convolution,
                  const ConvolutionGeometry& geometry);
  std::string_view kind() const override { return "convolution"; }
  // Also decides the order in which the weight is stored.
  void choose_layouts(ChannelBlocks& blocks) override;
  // The layouts are valid after choose_layouts().
  const ConvolutionGeometry& geometry() const { return geometry_; }

 protected:
  const Context& context_;
  Parameters& parameters_;
  ParameterId weight_ = -1;

 private:
  // The layouts in blocks of `block` channels (0: none), for an input in blocks of x_block.
  ConvolutionGeometry in_blocks(std::int64_t block, std::int64_t x_block) const;

  bool on_gpu_;
  ConvolutionGeometry geometry_;
};

// Derives the shapes; choose_layouts() adds the layouts.
ConvolutionGeometry convolution_geometry(const Program& program, TensorId x,
                                         const std::string& name, const Conv2dOptions& options);

}  // namespace rk
