#include "layers/networks/record_backbone.h"

#include "engine/base/colours.h"
#include "engine/base/integers.h"
#include "layers/concat.h"
#include "layers/conv_bn.h"
#include "layers/elementwise.h"

#include <utility>

namespace rk {
namespace {

class Recording {
 public:
  Recording(Program& program, const NetworkSpec& spec, const Backbone& backbone, TensorId images)
      : program_(program), spec_(spec), backbone_(backbone), images_(images) {}

  TensorId run() {
    for (const Layer& layer : backbone_.layers()) {
      results_.push_back(std::visit([&](const auto& l) { return record(l); }, layer));
    }
    return results_.back();
  }

 private:
  TensorId result(LayerId layer) const { return layer == kImages ? images_ : results_[at(layer)]; }

  TensorId record(const ConvBn& unit) {
    const TensorId x = result(unit.x);
    const Conv2dOptions convolution = options_of(unit);
    BatchNormOptions batchnorm_options{.mode = spec_.batchnorm, .epsilon = unit.epsilon};
    if (spec_.fuse && joins_batchnorms(program_, spec_.batchnorm)) {
      if (!unit.relu) {  // the unit that adds it normalises it
        const TensorId y = conv2d(program_, x, unit.convolution, convolution);
        // Here already, so that parameters are in the order of their layers.
        declare_batchnorm(program_, unit.batchnorm, unit.channels);
        return y;
      }
      if (const ConvBn* shortcut = backbone_.shortcut_of(unit)) {
        const TensorId y = conv2d(program_, x, unit.convolution, convolution);
        return joined_batchnorm(program_, y, unit.batchnorm, result(*unit.residual),
                                shortcut->batchnorm, batchnorm_options, unit.name);
      }
    }
    const TensorId residual = unit.residual ? result(*unit.residual) : -1;
    if (spec_.fuse) {
      batchnorm_options.relu = unit.relu;
      batchnorm_options.residual = residual;
      return conv_bn(program_, x, {unit.convolution, unit.batchnorm, unit.name}, convolution,
                     batchnorm_options);
    }
    TensorId y = batchnorm(program_, conv2d(program_, x, unit.convolution, convolution),
                           unit.batchnorm, batchnorm_options);
    if (residual >= 0) y = add(program_, y, residual, unit.batchnorm + ".add");
    return unit.relu ? relu(program_, y, unit.name) : y;
  }

  TensorId record(const Pooling& pooling) {
    const Window& window = pooling.window;
    const PoolOptions options{.kernel = window.size,
                              .stride = {window.stride, window.stride},
                              .padding = window.padding,
                              .ceil_mode = window.ceil_mode};
    const auto pool = pooling.kind == Pooling::Kind::kMaximum ? max_pool : average_pool;
    return pool(program_, result(pooling.x), pooling.name, options);
  }

  TensorId record(const Concatenation& concatenation) {
    std::vector<TensorId> inputs;
    for (const LayerId input : concatenation.inputs) inputs.push_back(result(input));
    return concat(program_, inputs, concatenation.name);
  }

  // Images may have channels of zeros beside the colours, for which there are no weights.
  Conv2dOptions options_of(const ConvBn& unit) const {
    const Window& window = unit.window;
    return {.out_channels = unit.channels,
            .kernel = window.size,
            .stride = {window.stride, window.stride},
            .padding = window.padding,
            .in_channels = unit.x == kImages ? kColours : 0};
  }

  Program& program_;
  const NetworkSpec& spec_;
  const Backbone& backbone_;
  TensorId images_;
  std::vector<TensorId> results_;  // of the layers so far
};

}  // namespace

TensorId record_backbone(Program& program, const NetworkSpec& spec, const Backbone& backbone,
                         TensorId images) {
  return Recording(program, spec, backbone, images).run();
}

}  // namespace rk
