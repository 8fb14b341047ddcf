#include "layers/networks/network.h"

#include "engine/base/colours.h"
#include "engine/base/note.h"
#include "engine/device/precision.h"
#include "layers/l2norm.h"
#include "layers/linear.h"
#include "layers/networks/record_backbone.h"
#include "layers/onednn/convolution_block.h"
#include "weights/architectures/registry.h"

namespace rk {

TensorId network_input(Program& program, std::int64_t batch, std::int64_t height,
                       std::int64_t width) {
  if (program.on_gpu()) {
    const Precision precision = program.options().precision;
    const std::int64_t channels = image_channels(precision);
    return program.input("input", {batch, height, width, channels}, channels,
                         image_type(precision));
  }
  // The direct convolutions want the input of a first layer with three channels as planes of
  // pixels.
  const bool direct = convolution_block() > 0;
  if (!direct) {
    note(
        "this processor has no AVX2, without which convolutions take some hundred times as long: "
        "oneDNN computes them by its reference");
  }
  const std::int64_t planes = direct ? 1 : kColours;
  return program.input("input", {batch, height, width, kColours}, planes);
}

Network build_network(Program& program, const NetworkSpec& spec, std::int64_t batch,
                      std::int64_t height, std::int64_t width) {
  const Backbone layers = backbone(spec.arch, spec.stride_in_1x1);
  Network network{};
  network.input = network_input(program, batch, height, width);
  const TensorId x = record_backbone(program, spec, layers, network.input);
  const Shape& map = program.shape(x);
  const bool of_batch = program.options().gradients && spec.batchnorm == BatchNormMode::kBatch;
  // The mean of one value is that value: every picture would come out as the same.
  expect(!of_batch || map[0] * map[1] * map[2] > 1,
         "[{}] expected more than one picture at a time of {} x {} pixels, where the last batch "
         "norms have one value a channel; use --chunk 2 or more, a larger --image-size, or --bn "
         "frozen",
         spec.arch, height, width);
  network.features = global_pool(program, x, "features", spec.pool);
  const TensorId projected = spec.dim == 0 ? network.features
                                           : linear(program, network.features, "embedding",
                                                    {.out_features = spec.dim,
                                                     .orthogonal = spec.orthogonal_embedding,
                                                     .group = ParameterGroup::kEmbedding});
  network.embeddings = l2norm(program, projected, "embeddings");
  program.set_output(network.embeddings);
  return network;
}

}  // namespace rk
