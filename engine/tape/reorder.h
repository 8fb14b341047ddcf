// A node that copies images into another layout (engine/tape/layout.h); Program::lay_out() adds it
// where two layouts meet. They do on a CPU: where oneDNN has no code of its own for a convolution
// in channel blocks, this one is computed in NHWC among neighbours in blocks. With AVX2 that
// happens in every network if images are small, in Inception v3 for images of 224 pixels too; with
// AVX-512 in ResNet-18 and -50 for images of at most 4 pixels.
#pragma once

#include "engine/tape/layout.h"
#include "engine/tape/node.h"

#include <memory>
#include <string>

namespace rk {

// x and y describe the same images in two layouts; float32, on the CPU.
std::unique_ptr<Node> reorder_node(const std::string& name, int threads, const ImageLayout& x,
                                   const ImageLayout& y);

}  // namespace rk
