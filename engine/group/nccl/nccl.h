// NCCL, loaded when a group of several is made, so that a program with GPU code also starts without
// it.
#pragma once

#include "engine/system/dynamic_library.h"

#include <nccl.h>

namespace rk {

struct Nccl {
  Nccl();  // throws DeviceError if the library or one of its functions is missing

  DynamicLibrary library = DynamicLibrary::missing("");  // keeps the functions loaded
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) init_rank = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;

  // Throws DeviceError "[what] NCCL: <its message>" unless `result` is success.
  void check(ncclResult_t result, const char* what) const;
};

}  // namespace rk
