// What a run is made of before its first step: data, batches, evaluation and network.
#pragma once

#include "data/samplers/sampler.h"
#include "data/sources/dataset.h"
#include "tools/cli/cli.h"
#include "tools/train/epoch_evaluation.h"
#include "tools/train/settings/setting_table.h"
#include "tools/train/settings/train_settings.h"
#include "tools/train/trainer_within_memory.h"
#include "training/trainer.h"
#include "weights/checkpoint.h"
#include "weights/run_folder.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

// What a run starts from besides its settings.
struct RunStart {
  std::unique_ptr<Checkpoint> checkpoint;  // to resume from; null: a new run
  std::unique_ptr<Checkpoint> weights;     // initial weights of a new run
  std::unique_ptr<FolderLock> lock;        // only in the first process
  bool last_damaged = false;               // do not rotate last.h5 over the valid previous.h5
  bool from_last = false;                  // the checkpoint is last.h5
  bool own_table = true;                   // a metrics.csv in the folder is of an earlier start
  // Settings other than those of the checkpoint: name and, for the user, a line each.
  std::vector<std::pair<std::string, std::string>> changes;
  // Whether the run may set --batch to what the classes can fill, --chunk to what fits in memory.
  bool open_batch = false, open_chunk = false;
};

struct TrainSetup {
  // Finds all errors in data and settings. settings: those that `start` leaves open may change.
  TrainSetup(const Context& context, const CommonOptions& common, TrainSettings& settings,
             const SettingTable& table, const RunStart& start);

  // What is printed before the run begins, in lines.
  // class_names: all that the network was trained on.
  std::vector<std::string> description(const TrainSettings& settings,
                                       const std::vector<std::string>& class_names,
                                       int processes) const;

  Dataset data;
  EpochEvaluation evaluation;
  std::unique_ptr<Sampler> sampler;  // of whole batches
  std::unique_ptr<Sampler> share;    // of this process's part of each batch
  LoadingBytes loading;
  std::unique_ptr<Trainer> trainer;
  RunState new_run;  // the state of a run that begins
};

}  // namespace rk
