#include "tools/train/epoch_evaluation.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "retrieval/evaluate.h"
#include "tools/cli/messages.h"
#include "tools/cli/parse_json.h"
#include "tools/cli/progress.h"
#include "tools/common/image_check.h"
#include "tools/common/metrics_report.h"
#include "tools/common/similarity_counts.h"
#include "tools/train/held_out.h"
#include "tools/train/settings/train_options.h"
#include "tools/train/shared_signal.h"
#include "tools/train/trainer_within_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace rk {

using nlohmann::ordered_json;

EpochEvaluation::EpochEvaluation(const Context& context, const CommonOptions& common,
                                 const TrainSettings& settings, const Dataset& train)
    : context_(context), common_(common), settings_(settings), held_out_(open_held_out(settings)) {
  if (!held_out_ || settings.eval_train == 0) return;
  const std::int64_t images =
      settings.eval_train < 0 ? train.size() : std::min(settings.eval_train, held_out_->size());
  train_sample_ = training_sample(train, images, common.seed);
}

void EpochEvaluation::plan(Parameters& parameters) {
  if (!held_out_) return;
  PlannedEvaluation planned = plan_evaluation(context_, parameters, settings_, *held_out_);
  embedder_ = std::move(planned.embedder);
  reserved_bytes_ = planned.bytes;
}

std::optional<ordered_json> EpochEvaluation::evaluate(std::int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<ordered_json> entry = evaluate_both(step);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return entry;
}

std::optional<ordered_json> EpochEvaluation::evaluate_both(std::int64_t step) {
  std::optional entry(ordered_json::object());
  if (!held_out_) return entry;
  const std::optional<ordered_json> held_out = measure(*held_out_, "held-out", step);
  if (!held_out) return std::nullopt;
  const auto& bad = embedder_->bad_images();
  if (std::ssize(bad) != skipped_) {
    skipped_ = std::ssize(bad);
    if (!common_.quiet) {
      tell("held out: {}", bad.empty()
                               ? "every image can be read again"
                               : fmt::format("the metrics leave out {} that cannot be read, {}",
                                             counted(skipped_, "image"), bad.front().reason));
    }
  }
  if (step == 0) note_rotated(*held_out_);
  if (number_or(*held_out, "num_queries_valid", 1) == 0) {
    note_first("nothing to find",
               "held out: no picture has another of its class, so that there is nothing to find: "
               "its metrics are undefined, and the newest epoch is taken for the best; said once");
  }
  if (train_sample_) {
    std::optional<ordered_json> sample = measure(*train_sample_, "training", step);
    if (!sample) return std::nullopt;
    (*entry)["train"] = std::move(*sample);
  }
  entry->update(*held_out);
  return entry;
}

std::optional<ordered_json> EpochEvaluation::measure(const Dataset& data, const char* what,
                                                     std::int64_t step) {
  std::optional<Metrics> metrics;
  bool finite = true;
  if (common_.processes->first()) {
    Progress progress(fmt::format("evaluating {}", what), data.size(), "images", common_.quiet);
    EmbedOptions options = embed_options(settings_);
    options.progress = [&](std::int64_t done) { progress.update(done); };
    const std::optional<EmbeddingSet> set = [&] {
      try {
        return embedder_->embed(data, options);
      } catch (const UnreadableImage& error) {
        fail<InputError>("{}; --max-bad, if it is not 0, leaves such images out of the metrics",
                         error.what());
      }
    }();
    finite = !set || set->finite();
    if (set && finite) {
      EvaluateOptions how;
      how.interrupted = interrupted;
      metrics = rk::evaluate(context_, set->view(), nullptr, how);
    }
  }
  if (common_.processes->all_reduce_max(finite ? 0 : 1) != 0) refuse_embeddings(what, step);
  if (asked_to_stop(*common_.processes)) return std::nullopt;
  std::optional values(ordered_json::object());
  if (metrics) {
    values = metrics_json(*metrics);
    (*values)["similarities"] = similarity_counts_json(*metrics);
  }
  return values;
}

void EpochEvaluation::refuse_embeddings(const char* what, std::int64_t step) const {
  if (step == 0) {
    fail<InputError>(
        "{}: the network makes NaN or infinity of {} images before it has learnt anything; "
        "start from other weights",
        settings_.weights.empty() ? settings_.data : settings_.weights, what);
  }
  fail<DivergedError>(
      "training diverged: after step {} the network makes NaN or infinity of {} images; "
      "lower --lr or lengthen --warmup",
      step, what);
}

}  // namespace rk
