// Names for pieces of the work, for NVIDIA's profilers: Nsight Systems shows the ranges on its time
// line, Nsight Compute writes beside each kernel the ranges it was started in, and
// tools/profile_table.py adds up per range (docs/profiling.md).
//
//   for (const auto& node : nodes_) {
//     const ProfileRange range(node->name());  // "layer1.0.conv2"
//     node->forward(context);
//   }
//
// Ranges nest, and belong to the thread. Where no profiler is attached, and in builds without CUDA,
// one costs a comparison. A name holds none of  " : / @ [ ] * + ,  which profilers' filters use.
#pragma once

#include <string>

namespace rk {

class ProfileRange {
 public:
  // What is called from here to the end of the scope. The name is kept for the next time.
  explicit ProfileRange(const std::string& name);
  ~ProfileRange();
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  bool pushed_ = false;
};

// Around one repeat of a benchmark after the warm-up, waiting for the GPU included: what
// tools/profile_step.sh and tools/profile_loss.sh look at, and nothing else.
inline const std::string kMeasuredRange = "measured";

}  // namespace rk
