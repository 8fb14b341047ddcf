// ResNet-18 and ResNet-50 (He et al. 2016) exactly as torchvision builds them, with an embedding
// layer on top instead of the classifier:
//   images (N, H, W, 3) -> features (N, 512 or 2048) by global pooling -> embedding.weight, .bias
//   -> unit length (N, dim). Without an embedding layer (dim 0) the features are brought to unit
//   length as they are.
// Parameters carry torchvision's names. Bottlenecks stride in their 3x3 (v1.5), or, as the original
// paper and Keras do, in their first 1x1 (stride_in_1x1).
#pragma once

#include "engine/tape/program.h"
#include "layers/batchnorm.h"
#include "layers/pool.h"

#include <string>
#include <vector>

namespace rk {

struct NetworkSpec {
  std::string arch = "resnet50";
  std::int64_t dim = 512;  // 0: no embedding layer
  GlobalPoolOptions pool;
  bool stride_in_1x1 = false;
  BatchNormMode batchnorm = BatchNormMode::kBatch;
  bool orthogonal_embedding = false;
  // Off: every layer a node of its own, nothing fused or folded, which is what the reference files
  // describe and tests compare with.
  bool fuse = true;
};

const std::vector<std::string>& network_names();

// The images (batch, height, width, 3) as the first convolution wants them: planes or NHWC on the
// CPU, with channels of zeros behind the third (image_channels()) on a GPU.
TensorId network_input(Program& program, std::int64_t batch, std::int64_t height,
                       std::int64_t width);

struct Network {
  TensorId input;       // network_input()
  TensorId features;    // what torchvision feeds to its classifier
  TensorId embeddings;  // unit rows
};

// Records the network for images (batch, height, width, 3). Named tensors in the program: "conv1",
// "bn1", "relu", "maxpool", "layer1.0" ..., "features", "embeddings".
Network build_network(Program& program, const NetworkSpec& spec, std::int64_t batch,
                      std::int64_t height, std::int64_t width);

}  // namespace rk
