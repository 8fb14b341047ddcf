#include "training/schedule.h"

#include "engine/base/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace rk {
namespace {

double shape(const ScheduleParams& p, std::int64_t step) {
  switch (p.kind) {
    case ScheduleKind::kConstant: return 1.0;
    case ScheduleKind::kStep: {
      const std::int64_t drops = step / p.every;
      return std::pow(p.factor, static_cast<double>(drops));
    }
    case ScheduleKind::kMilestones: {
      const auto passed =
          std::upper_bound(p.milestones.begin(), p.milestones.end(), step) - p.milestones.begin();
      return std::pow(p.factor, static_cast<double>(passed));
    }
    case ScheduleKind::kCosine: {
      // A run that continues past its planned end (resumed with more epochs) stays at the floor.
      const double share = std::clamp(
          static_cast<double>(step - p.warmup) / static_cast<double>(p.total - p.warmup), 0.0, 1.0);
      return p.floor + (1.0 - p.floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
    }
  }
  return 1.0;
}

}  // namespace

Schedule::Schedule(ScheduleParams params) : params_(std::move(params)) {
  const ScheduleParams& p = params_;
  if (!(p.rate > 0 && std::isfinite(p.rate))) {
    fail<UsageError>("schedule: the learning rate must be above 0, got {}", p.rate);
  }
  if (p.warmup < 0) fail<UsageError>("schedule: warm-up must be >= 0 steps, got {}", p.warmup);
  if (!(p.factor > 0 && std::isfinite(p.factor))) {
    fail<UsageError>("schedule: the factor must be above 0, got {}", p.factor);
  }
  if (p.kind == ScheduleKind::kStep && p.every < 1) {
    fail<UsageError>("--drop-every: a drop must come every step or less often, got {} steps",
                     p.every);
  }
  if (p.kind == ScheduleKind::kMilestones &&
      !std::is_sorted(p.milestones.begin(), p.milestones.end())) {
    fail<UsageError>("schedule: milestones must ascend");
  }
  if (p.kind == ScheduleKind::kCosine && p.total <= p.warmup) {
    fail<UsageError>(
        "--warmup: takes {} steps of the run's {}, of which none is left for the cosine; shorten "
        "it, "
        "or train for more --epochs",
        p.warmup, p.total);
  }
  if (!(p.floor >= 0 && p.floor <= 1)) {
    fail<UsageError>("schedule: the cosine's floor must lie in [0, 1], got {}", p.floor);
  }
}

double Schedule::rate(std::int64_t step) const {
  double rate = params_.rate * shape(params_, step);
  if (step < params_.warmup) {
    rate *= static_cast<double>(step + 1) / static_cast<double>(params_.warmup + 1);
  }
  return rate;
}

}  // namespace rk
