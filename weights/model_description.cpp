#include "weights/model_description.h"

#include "engine/base/error.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

namespace rk {

void check_model(const ModelDescription& model, const std::string& path) {
  // Checked here, so that an error in these values is reported against the file.
  const auto demand = [&](bool good, const char* name, const auto& value,
                          const std::string& expected) {
    if (good) return;
    fail<InputError>("{}: attribute {} is {}, expected {}; use another checkpoint", path, name,
                     value, expected);
  };
  demand(model.pool == "avg" || model.pool == "max" || model.pool == "gem", "pool", model.pool,
         "avg, max or gem");
  demand(model.gem_p >= kLeastGemP && model.gem_p <= kMostGemP, "gem_p", model.gem_p,
         fmt::format("{} to {}", kLeastGemP, kMostGemP));
  demand(model.dim >= 0 && model.dim <= kMostDim, "dim", model.dim,
         fmt::format("0 to {}", kMostDim));
  for (std::size_t c = 0; c < 3; ++c) {
    demand(std::abs(model.input_mean[c]) <= kMostInput, "input_mean", model.input_mean[c],
           "numbers of -1e6 to 1e6");
    demand(model.input_std[c] >= kLeastInputStd && model.input_std[c] <= kMostInput, "input_std",
           model.input_std[c], "numbers of 1e-6 to 1e6");
  }
  demand(model.input_scale == 255.0, "input_scale", model.input_scale,
         "255, which is what images are divided by");
  demand(model.channel_order == "RGB", "channel_order", model.channel_order,
         "RGB, the order in which images are read");
  demand(model.interpolation == "bilinear", "interpolation", model.interpolation,
         "bilinear, which is how images are resized");
  demand(model.crop >= 1 && model.crop <= kMostSide, "crop", model.crop,
         fmt::format("1 to {}", kMostSide));
  demand(model.resize >= model.crop && model.resize <= kMostSide, "resize", model.resize,
         fmt::format("the crop or more, to {}", kMostSide));
}

}  // namespace rk
