// A network as it is recorded without a GPU, each convolution and its normalisation in one node:
// what lists of its graphs and units are made from (layers/graphs/graph.h).
#pragma once

#include "engine/tape/program.h"
#include "layers/networks/network.h"

#include <cstdint>

namespace rk {

class RecordedNetwork {
 public:
  // For training, on `batch` square images of `side` pixels.
  RecordedNetwork(const Context& context, NetworkSpec spec, std::int64_t batch, std::int64_t side)
      : host_(context.threads()), program_(host_, parameters_, {.gradients = true}) {
    spec.batchnorm = BatchNormMode::kRunning;
    build_network(program_, spec, batch, side, side);
  }
  const Program& program() const { return program_; }

 private:
  Context host_;
  Parameters parameters_;
  Program program_;
};

}  // namespace rk
