// What follows an epoch: the held-out classes, and a sample of the training classes, embedded by
// the network as it is and measured. The first process computes; all make the calls.
#pragma once

#include "data/sources/dataset.h"
#include "tools/cli/cli.h"
#include "tools/train/settings/train_settings.h"
#include "training/embed.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace rk {

class EpochEvaluation {
 public:
  // Opens the held-out data and draws the sample. The arguments must outlive the object.
  EpochEvaluation(const Context& context, const CommonOptions& common,
                  const TrainSettings& settings, const Dataset& train);

  // Null: nothing is held out; no sample is evaluated.
  const Dataset* held_out() const { return held_out_ ? &*held_out_ : nullptr; }
  const Dataset* train_sample() const { return train_sample_ ? &*train_sample_ : nullptr; }

  // Plans the network, which shares the trainer's parameters, if something is held out; call once,
  // before evaluate(). Throws DeviceError naming --eval-batch.
  void plan(Parameters& parameters);
  std::size_t reserved_bytes() const { return reserved_bytes_; }

  // The metrics of the held-out classes after `step` steps, and under "train" those of the sample:
  // an empty object if nothing is held out, and in all processes but the first. Nullopt if a signal
  // asked any process to stop. Throws if embeddings are not finite: InputError before the first
  // step, DivergedError after it.
  std::optional<nlohmann::ordered_json> evaluate(std::int64_t step);
  double seconds() const { return seconds_; }  // of the last evaluation

 private:
  std::optional<nlohmann::ordered_json> evaluate_both(std::int64_t step);
  // what: "held-out", "training".
  std::optional<nlohmann::ordered_json> measure(const Dataset& data, const char* what,
                                                std::int64_t step);
  [[noreturn]] void refuse_embeddings(const char* what, std::int64_t step) const;

  const Context& context_;
  const CommonOptions& common_;
  const TrainSettings& settings_;
  std::optional<Dataset> held_out_, train_sample_;
  std::unique_ptr<Embedder> embedder_;
  std::size_t reserved_bytes_ = 0;
  std::int64_t skipped_ = 0;  // held-out images that cannot be read
  double seconds_ = 0;
};

}  // namespace rk
