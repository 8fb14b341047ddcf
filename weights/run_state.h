// The progress of a run, as a checkpoint holds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

// State of a run with loss scaling (fp16), in which not every step is an update.
struct LossScaleState {
  std::int64_t updates = 0;  // of the optimizer
  double scale = 0;          // 0: the run has none
  std::int64_t good_steps = 0;

  bool operator==(const LossScaleState&) const = default;
};

// The largest count of steps, epochs and so on; a file with a larger one is refused.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

// `epoch` epochs are complete, and `batch` batches of the next one.
struct RunState {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  std::uint64_t seed = 0;
  double best = -1.0;  // the best value so far of the metric that chooses best.h5; -1: none yet
  // Complete epochs since `best` was reached; 0 in older files, which do not record this.
  std::int64_t since_best = 0;
  double loss_sum = 0.0;  // over the batches of the current epoch
  std::string data;       // identifies the training set: Dataset::identity()
  // Identifies the data that best.h5 was chosen on; empty in older files, which do not record this.
  std::string held_out;
  // Names of the classes of that data, as in `classes`; empty in older files.
  std::vector<std::string> held_out_classes;
  std::string environment;           // what the last bits also depend on: version, machine
  std::string settings;              // JSON text
  std::vector<std::string> history;  // JSON text, one an epoch
  // Names of all classes that the network has been trained on, in this run and in earlier runs that
  // its weights come from: merged classes and the classes they were merged from. Empty in older
  // files, which do not record this.
  std::vector<std::string> classes;
  // Indices of the pictures that cannot be read, in the order in which they were met.
  std::vector<std::int64_t> bad_images;
  LossScaleState loss_scale;

  bool operator==(const RunState&) const = default;
};

}  // namespace rk
