// Names for pieces of work, for NVIDIA's profilers: Nsight Systems shows the ranges on its time
// line, Nsight Compute writes beside each kernel the ranges it was started in, and
// tools/scripts/profile_table.py sums up per range (docs/profiling.md).
//
//   for (const auto& node : tape_.nodes) {
//     const ProfileRange range(node->name());  // "layer1.0.conv2"
//     node->forward();
//   }
//
// Ranges nest, per thread. Without an attached profiler, and in builds without CUDA, a range costs
// one comparison. A name must hold none of  " : / @ [ ] * + ,  which profilers' filters use.
#pragma once

#include <string>

namespace rk {

class ProfileRange {
 public:
  // Names the work from here to the end of the scope, if `wanted`. Registered names are kept for
  // reuse.
  explicit ProfileRange(const std::string& name, bool wanted = true);
  ~ProfileRange();
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  bool pushed_ = false;
};

// The range that tools/scripts/profile.sh measures: one repeat of a benchmark, including the wait
// for the GPU:
//   const ProfileRange range(kMeasuredRange, repeat == repeats - 1);
inline const std::string kMeasuredRange = "measured";

}  // namespace rk
