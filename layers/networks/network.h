// A network of weights/architectures with an embedding layer in place of the classifier:
//   images (N, H, W, 3) -> features (N, C) by global pooling -> embedding.weight, .bias -> unit
//   length (N, dim). Without an embedding layer (dim 0) the features themselves are scaled to unit
//   length.
#pragma once

#include "engine/tape/program.h"
#include "layers/batchnorm.h"
#include "layers/pool.h"

#include <cstdint>
#include <string>

namespace rk {

struct NetworkSpec {
  std::string arch = "resnet50";
  std::int64_t dim = 512;  // 0: no embedding layer
  GlobalPoolOptions pool;
  bool stride_in_1x1 = false;  // of resnet50
  BatchNormMode batchnorm = BatchNormMode::kBatch;
  bool orthogonal_embedding = false;
  // If false, every layer is a node of its own, with nothing fused or folded: this is what the
  // reference files describe and tests compare with.
  bool fuse = true;
};

// The input images (batch, height, width, 3) as the first convolution wants them: planes or NHWC on
// the CPU, padded with channels of zeros (image_channels()) on a GPU.
TensorId network_input(Program& program, std::int64_t batch, std::int64_t height,
                       std::int64_t width);

struct Network {
  TensorId input;       // network_input()
  TensorId features;    // what torchvision feeds to its classifier
  TensorId embeddings;  // unit rows
};

// Records the network for images (batch, height, width, 3). Throws std::invalid_argument if batch
// norm would see a single value a channel in training. Named tensors in the program: the
// network's layers and blocks by torchvision's names, "features", "embeddings".
Network build_network(Program& program, const NetworkSpec& spec, std::int64_t batch,
                      std::int64_t height, std::int64_t width);

}  // namespace rk
