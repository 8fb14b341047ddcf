// The learning rate as a pure function of the step, so that resuming needs nothing but the step.
//
//   constant   1                       step        factor^floor(step / every)
//   milestones factor^(number of milestones <= step)
//   cosine     floor + (1 - floor) (1 + cos(pi s)) / 2,  s = (step - warmup) / (total - warmup)
//
// times `rate`; the first `warmup` steps are also multiplied by (step + 1) / (warmup + 1). Steps
// count from 0; recipes that count in epochs first multiply by the steps per epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace rk {

enum class ScheduleKind { kConstant, kStep, kMilestones, kCosine };

struct ScheduleParams {
  ScheduleKind kind = ScheduleKind::kConstant;
  double rate = 1e-4;
  std::int64_t warmup = 0;                    // steps
  double factor = 0.1;                        // step, milestones
  std::int64_t every = 0;                     // step: steps between two drops
  std::vector<std::int64_t> milestones = {};  // milestones: steps, ascending
  std::int64_t total = 0;                     // cosine: steps of the whole run
  double floor = 0.0;                         // cosine: share of the rate left at the end
};

class Schedule {
 public:
  // Throws UsageError naming the value that makes no sense (rate <= 0, every < 1, ...).
  explicit Schedule(ScheduleParams params);
  double rate(std::int64_t step) const;

 private:
  ScheduleParams params_;
};

}  // namespace rk
