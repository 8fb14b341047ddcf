#include "tools/train/run/step_pipeline.h"

#include "engine/base/error.h"
#include "engine/base/note.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

namespace rk {

const Batch* StepPipeline::fetch() {
  if (batch_ != nullptr || failure_) return batch_;
  try {
    batch_ = loader_->next();
  } catch (...) {
    failure_ = std::current_exception();
  }
  return batch_;
}

void StepPipeline::advance() {
  const Batch* batch = std::exchange(batch_, nullptr);
  expect(batch != nullptr && batch->epoch == run_.epoch && batch->index == next_batch(),
         "[train] the loader is not where the run is");
  under_way_ = true;
  const auto start = std::chrono::steady_clock::now();
  if (const std::optional<StepResult> result = trainer_.advance(*batch)) {
    step_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    count(*result);
  }
  under_way_ = trainer_.steps_in_flight() > 0;
}

void StepPipeline::prefetch() {
  if (!trainer_.copies_pixels()) return;
  if (const Batch* batch = fetch()) trainer_.stage(*batch);
}

void StepPipeline::finish() {
  while (const std::optional<StepResult> result = trainer_.finish()) count(*result);
  under_way_ = false;
}

void StepPipeline::count(const StepResult& result) {
  run_.loss_sum += result.loss;
  ++run_.batch;
  run_.step = trainer_.steps();
  if (result.valid_queries == 0) {
    note_first(
        "no positive",
        fmt::format("step {}: no image of the batch had both another of its class and one of "
                    "another class, so that nothing was learnt; said once",
                    run_.step));
  } else if (still_loss_.add(result.loss)) {
    note_first(
        "still loss",
        fmt::format("step {}: the loss has been {:.4f} for {} batches on end, as it is where "
                    "all images are embedded in one place; if it stays there, begin anew "
                    "with a lower --lr or a longer --warmup; said once",
                    run_.step, result.loss, StillLoss::kSteps));
  }
}

double StepPipeline::take_waited_seconds() {
  const double before = std::exchange(waited_before_, loader_->waited_seconds());
  return waited_before_ - before;
}

}  // namespace rk
