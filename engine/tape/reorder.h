// A node that copies images into another layout (engine/tape/layout.h); Program::lay_out() adds it
// where two layouts meet.
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
