// The nodes that compute on a GPU, one function per kind: layers append these if the program is on
// a GPU (Program::on_gpu()). The layer itself defines shapes, parameters and meaning (conv2d.h,
// conv_bn.h, batchnorm.h, ...); these nodes only build and run.
//
// tests/cuda compares them with the CPU, on a GPU and on the emulated one of tests/host_gpu.
#pragma once

#include "layers/batchnorm.h"
#include "layers/conv2d.h"
#include "layers/conv_bn.h"
#include "layers/pool.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rk::gpu {

std::unique_ptr<Node> conv2d_node(const std::string& name, Program& program,
                                  const ConvolutionGeometry& geometry);

std::unique_ptr<Node> folded_conv_node(const ConvBnNames& names, Program& program,
                                       const ConvolutionGeometry& geometry,
                                       const BatchNormOptions& options);

// Sets in `inputs` what the node's edges can do.
std::unique_ptr<Node> batchnorm_node(const std::string& name, Program& program, TensorId x,
                                     const BatchNormOptions& options,
                                     std::vector<NodeInput>& inputs);

std::unique_ptr<Node> joined_batchnorm_node(Program& program, TensorId x, const std::string& name,
                                            TensorId shortcut, const std::string& shortcut_name,
                                            const BatchNormOptions& options);

// x (N, H, W, C) -> y (N, OH, OW, C).
std::unique_ptr<Node> max_pool_node(const std::string& name, const Program& program, const Shape& x,
                                    const Shape& y, const PoolOptions& options);
std::unique_ptr<Node> average_pool_node(const std::string& name, const Program& program,
                                        const Shape& x, const Shape& y, const PoolOptions& options);
std::unique_ptr<Node> global_pool_node(const std::string& name, const Program& program,
                                       const Shape& x, const GlobalPoolOptions& options);

// Concatenates its inputs along the channels.
std::unique_ptr<Node> concat_node(const std::string& name, const Program& program);

// Whether a convolution may write y, and read dy, with strided rows (NodeOutput::may_be_strided).
// In bf16, cuDNN has no engine that fuses an addend or a mask with an input's gradient if dy has
// strided rows.
constexpr bool writes_rows_apart(Precision precision, bool gradients) {
  return precision != Precision::kBf16 || !gradients;
}

// Chooses the layout of the images that a convolution reads for which cuDNN is fastest: for a
// stride above 1, cells of stride x stride pixels (SpaceToDepth). Pixel by pixel, ResNet's first
// layer has 7x7 taps of 4 channels, 3 of them used, for which cuDNN only has kernels of the
// previous GPU generation; cell by cell it has 4x4 taps of 16 channels, 12 of them used. In fp32,
// and if the images' gradient is wanted, images stay as they are.
void lay_out_images(Program& program, TensorId x, const std::string& name,
                    const Conv2dOptions& options);

// Sets on NodeInput what a convolution's edge to its input can do in the program's precision.
void allow_gradient_forms(const Program& program, const ConvolutionGeometry& geometry,
                          NodeInput& input);

}  // namespace rk::gpu
