// The steps of a run: takes batches from the loader to the trainer, and counts results in the run's
// state. A GPU computes a step while the next batch is fetched and uploaded, so that results come
// one step late; the state lacks the steps in flight until finish().
//
// An error of the loader is kept instead of thrown, for processes must leave together, between two
// steps. An error of the trainer leaves the step half done: under_way() stays true.
#pragma once

#include "data/loader/loader.h"
#include "tools/train/run/still_loss.h"
#include "training/trainer.h"
#include "weights/run_state.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace rk {

class StepPipeline {
 public:
  // The loader begins with the batch that `run` is at. Trainer and state must outlive the object.
  StepPipeline(Trainer& trainer, std::unique_ptr<Loader> loader, RunState& run)
      : trainer_(trainer), loader_(std::move(loader)), run_(run) {}

  // The batch of the epoch that the next step takes.
  std::int64_t next_batch() const { return run_.batch + trainer_.steps_in_flight(); }
  // Fetches that batch, if it is not there yet; null if the loader failed.
  const Batch* fetch();
  std::exception_ptr failure() const { return failure_; }  // of the loader; null: none
  // Makes a step on the fetched batch.
  void advance();
  // On a GPU, while the step is computed: fetches the batch behind it and begins to upload it.
  void prefetch();
  // Waits for the results of all steps begun; call before reading the trainer's state.
  void finish();

  // Whether a step has begun and has no result yet.
  bool under_way() const { return under_way_; }
  double step_seconds() const { return step_seconds_; }  // of the last one; 0: none yet
  // All pictures that the loader could not read.
  const std::vector<BadImage>& bad_images() const { return loader_->bad_images(); }
  // For images, since the last call.
  double take_waited_seconds();

 private:
  void count(const StepResult& result);

  Trainer& trainer_;
  std::unique_ptr<Loader> loader_;
  RunState& run_;
  const Batch* batch_ = nullptr;  // fetched, for the next step
  std::exception_ptr failure_;
  bool under_way_ = false;
  double step_seconds_ = 0;
  double waited_before_ = 0;
  StillLoss still_loss_;
};

}  // namespace rk
