#include "training/embed.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/system/signals.h"
#include "training/model_io.h"
#include "weights/architectures/registry.h"
#include "weights/run_folder.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace rk {

namespace {

// Whether these weights are those of one epoch among several.
bool is_one_of_several(const RunState& run) {
  const nlohmann::json settings = nlohmann::json::parse(run.settings, nullptr, false);
  if (!settings.is_object()) return run.epoch > 1;
  const auto epochs = settings.find("epochs");
  return run.epoch > 1 || (epochs != settings.end() && epochs->is_number() && *epochs > 1);
}

}  // namespace

std::int64_t batch_of(std::int64_t asked, std::int64_t images) {
  constexpr std::int64_t kUsual = 64;
  return std::min(asked, std::max(kUsual, images));
}

Embedder::Embedder(const Context& context, Parameters& parameters, const ModelDescription& model,
                   std::int64_t batch, Precision precision)
    : model_(model),
      batch_(batch),
      table_(float_table(model)),
      program_(context, parameters, Program::Options{.precision = precision}) {
  const Network network = build_network(program_, network_spec(model, BatchNormMode::kRunning),
                                        batch, model.crop, model.crop);
  input_ = network.input;
  output_ = network.embeddings;
  dim_ = program_.shape(output_)[1];
  program_.lay_out();  // fixes how weights are stored: parameters may be allocated from here on
}

std::size_t Embedder::plan() {
  if (!pixels_) {
    program_.plan();
    pixels_ = std::make_unique<NetworkInput>(program_, input_, table_, batch_);
  }
  return program_.footprint().arena_bytes + program_.footprint().workspace_bytes;
}

EmbeddingSet Embedder::no_rows(const Dataset& data) const {
  EmbeddingSet set;
  set.dim = dim_;
  for (const DataClass& of : data.classes()) set.classes.push_back(of.name);
  return set;
}

std::optional<EmbeddingSet> Embedder::embed(const Dataset& data, const EmbedOptions& options) {
  plan();
  LoaderOptions loading;
  loading.workers = options.workers;
  loading.cache_bytes = options.cache_bytes;
  loading.bad = options.skip_bad ? BadPolicy::kSkip : BadPolicy::kFail;
  EvalLoader loader(
      data, batch_,
      center_crop(static_cast<int>(model_.crop), static_cast<int>(model_.resize), model_.stretch),
      loading);
  EmbeddingSet set = no_rows(data);
  set.embeddings.reserve(static_cast<std::size_t>(data.size() * dim_));
  set.labels.reserve(static_cast<std::size_t>(data.size()));
  const bool categories = !data.categories().empty();
  while (const Batch* batch = loader.next()) {
    if (interrupted()) return std::nullopt;
    pixels_->stage(batch->pixels);
    pixels_->take();
    pixels_->fill(0);
    program_.forward();
    const std::vector<float> rows = program_.read(output_);
    set.embeddings.insert(set.embeddings.end(), rows.begin(), rows.begin() + batch->count * dim_);
    for (const std::int64_t index : batch->indices) {
      set.labels.push_back(data.label(index));
      set.paths.push_back(data.item_name(index));
      if (categories) set.categories.push_back(data.category(index));
    }
    if (options.progress) options.progress(set.count());
  }
  bad_ = loader.bad_images();
  if (set.count() == 0) {
    fail<InputError>("{}: of its {} none can be read: {}; give others", data.name(),
                     counted(data.size(), "image"),
                     bad_.empty() ? "there is none" : bad_.front().reason);
  }
  return set;
}

CheckpointEmbedder::CheckpointEmbedder(const Context& context, const Checkpoint& checkpoint,
                                       std::int64_t batch, Precision precision) {
  model_ = checkpoint.model();
  network_ = checkpoint.network();
  const RunState& run = checkpoint.run();
  trained_on_ = run.classes;
  // Last checkpoints are not chosen by a metric, even where their epoch is the best so far.
  const std::string file = std::filesystem::path(checkpoint.path()).filename().string();
  const bool as_it_came = file == kLastFile || file == kPreviousFile;
  if (is_one_of_several(run) && run.since_best == 0 && !as_it_came) {
    chosen_on_ = run.held_out_classes;
  }
  const std::vector<std::string>& known = network_names();
  if (std::find(known.begin(), known.end(), model_.arch) == known.end()) {
    fail<InputError>("{}: its network is '{}', known are {}; use another checkpoint",
                     checkpoint.path(), model_.arch, fmt::join(known, ", "));
  }
  embedder_ = std::make_unique<Embedder>(context, parameters_, model_, batch, precision);
  parameters_.allocate(context);
  load_parameters(checkpoint, parameters_);
  parameters_.upload();
}

EmbeddingSet CheckpointEmbedder::no_rows(const Dataset& data) const {
  EmbeddingSet set = embedder_->no_rows(data);
  set.network = network_;
  return set;
}

std::optional<EmbeddingSet> CheckpointEmbedder::embed(const Dataset& data,
                                                      const EmbedOptions& options) {
  std::optional<EmbeddingSet> set = embedder_->embed(data, options);
  if (set) set->network = network_;
  return set;
}

}  // namespace rk
