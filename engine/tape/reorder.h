// Images in another layout (engine/tape/layout.h): what Program::lay_out() puts where two layouts
// meet.
#pragma once

#include "engine/tape/layout.h"
#include "engine/tape/program.h"

#include <memory>
#include <string>

namespace rk {

// x and y are the same images; float32, on the CPU.
std::unique_ptr<Node> reorder_node(const std::string& name, int threads, const ImageLayout& x,
                                   const ImageLayout& y);

}  // namespace rk
