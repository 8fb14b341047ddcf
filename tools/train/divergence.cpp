#include "tools/train/divergence.h"

#include "weights/atomic_file.h"
#include "weights/run_folder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <span>

namespace rk {

using nlohmann::ordered_json;

namespace {

// Returns the file's path.
std::string write_report(const std::string& folder, const std::string& what, Trainer& trainer,
                         const Dataset& data, std::int64_t number) {
  const StepResult& step = trainer.last();
  const Batch& batch = trainer.last_batch();
  trainer.download();
  trainer.parameters().download_gradients();
  // NaN and infinity become null.
  ordered_json out = {{"what", what},
                      {"step", number},
                      {"epoch", batch.epoch + 1},
                      {"batch", batch.index + 1},
                      {"learning_rate", step.rate},
                      {"loss", step.loss},
                      {"gradient_norm", step.gradient_norm}};
  ordered_json images = ordered_json::array();
  for (const std::int64_t index : trainer.last_images()) images.push_back(data.item_name(index));
  if (batch.indices.size() < images.size()) {
    out["layers_of"] =
        fmt::format("the first {} of these images, the part of process 0", batch.indices.size());
  }
  out["images"] = std::move(images);
  // Read before the forward pass, since the gradients are those of the failed step.
  ordered_json gradients = trainer.not_finite(trainer.parameters().gradients());
  const std::vector<LayerActivations> layers = trainer.activations();
  const auto first = std::find_if(layers.begin(), layers.end(), [](const LayerActivations& layer) {
    return layer.not_finite > 0;
  });
  out["first_layer_not_finite"] =
      first != layers.end() ? ordered_json(first->name) : ordered_json();
  out["parameters_not_finite"] = trainer.not_finite(trainer.parameters().values());
  out["gradients_not_finite"] = std::move(gradients);
  ordered_json list = ordered_json::array();
  for (const LayerActivations& layer : layers) {
    list.push_back({{"name", layer.name},
                    {"max_abs", layer.max_abs},
                    {"not_finite", layer.not_finite},
                    {"values", layer.values}});
  }
  out["layers"] = std::move(list);
  const std::string text = out.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
  const std::string path = (std::filesystem::path(folder) / kDivergenceFile).string();
  write_atomic(path, text);
  return path;
}

}  // namespace

std::string dump_divergence(const std::string& folder, const std::string& what, Trainer& trainer,
                            const Dataset& data, std::int64_t number) {
  try {
    return fmt::format("; batch and layers are in {}",
                       write_report(folder, what, trainer, data, number));
  } catch (const std::exception& error) {
    // The run's own error must be reported even if writing this file fails.
    return fmt::format("; no report: {}", error.what());
  }
}

}  // namespace rk
