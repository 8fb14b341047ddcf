// The part of a run's record of its epochs that a report draws. Unknown numbers are NaN.
#pragma once

#include "retrieval/passes/undefined.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct RecordedSet {
  double recall_at_1 = kUndefined;
  double map_at_r = kUndefined;
  double jsd = kUndefined;
  // Pairs by score, in bins of equal width over [-1, 1]; empty if they were not recorded.
  std::vector<std::int64_t> positives, negatives;
};

struct RecordedEpoch {
  std::int64_t epoch = 0;  // 0: before training
  double loss = kUndefined;
  RecordedSet held_out, training;
};

struct LearningRecord {
  std::vector<RecordedEpoch> epochs;
  std::int64_t evaluated = -1;  // the epoch whose network the report evaluates; -1: not known
  std::string loss;             // "fastap:bins=10"; empty: not known
  std::string held_out;         // which images were held out: "split val"
};

}  // namespace rk
