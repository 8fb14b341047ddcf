// The kernels of kernels/launch.h, on images in float and in 16 bits, on a block emulated by
// threads: one list, in block_kernels.cpp. It also shows whether two threads write the same
// element.
#pragma once

#include "tests/race/emulated_block.h"

#include <functional>
#include <string>
#include <vector>

namespace rk::race {

// All three run the same kernels on the same numbers and return everything the kernels wrote: on a
// block of one thread, of four, and of as many as CudaBlock has, which share the work as they do on
// a GPU.
struct KernelCase {
  std::string name;
  std::function<std::vector<double>()> serial;
  std::function<std::vector<double>(BlockState&)> emulated;
  std::function<std::vector<double>()> wide;
  double bound = 0;  // largest relative difference
};

const std::vector<KernelCase>& kernel_cases();

// The kernels of kernels/cuda/*_kernels.h that no case run so far has had, without their template
// arguments.
std::vector<std::string> kernels_never_run();

}  // namespace rk::race
