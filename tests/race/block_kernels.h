// The kernels of kernels/launch.h on a block made of threads, in float: one list, in
// block_kernels.cpp. That each element is written by one thread alone shows too.
#pragma once

#include "tests/race/emulated_block.h"

#include <functional>
#include <string>
#include <vector>

namespace rk::race {

// All run the same kernels over the same numbers and return everything these wrote: a block of one
// thread, one of four, and one with CudaBlock's threads, which share the work as they do on a GPU.
struct KernelCase {
  std::string name;
  std::function<std::vector<double>()> serial;
  std::function<std::vector<double>(BlockState&)> emulated;
  std::function<std::vector<double>()> wide;
  double bound = 0;  // largest relative difference
};

const std::vector<KernelCase>& kernel_cases();

}  // namespace rk::race
