// Names for pieces of the work, for NVIDIA's profilers: Nsight Systems shows the ranges on its time
// line, Nsight Compute writes beside each kernel the ranges it was started in, and
// tools/scripts/profile_table.py adds up per range (docs/profiling.md).
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
  // What is called from here to the end of the scope, where it is wanted. The name is kept for the
  // next time.
  explicit ProfileRange(const std::string& name, bool wanted = true);
  ~ProfileRange();
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  bool pushed_ = false;
};

// What tools/scripts/profile.sh looks at is around one repeat of a benchmark, waiting for the GPU
// included:
//   const ProfileRange range(kMeasuredRange, repeat == repeats - 1);
inline const std::string kMeasuredRange = "measured";

}  // namespace rk
