// Stands for whatever computed the input of a node that is tested alone.
#pragma once

#include "engine/tape/program.h"

namespace rk::testing {

class SourceNode final : public Node {
 public:
  // width: channels side by side of an image; 0: all of them.
  explicit SourceNode(std::int64_t width = 0) : Node("source"), width_(width) {}
  void choose_layouts(ImageWidths& widths) override {
    if (width_ > 0) widths.output = width_;
  }
  void forward() override {}
  void backward() override {}

 private:
  std::int64_t width_;
};

}  // namespace rk::testing
