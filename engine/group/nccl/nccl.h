// NCCL, loaded when a group of several is made, so that a program with GPU code also starts without
// it.
#pragma once

#include "engine/system/dynamic_library.h"

#include <nccl.h>

namespace rk {

struct Nccl {
  Nccl();  // throws DeviceError if the library or one of its functions is missing

  DynamicLibrary library;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) init_rank;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclGetErrorString) error_string;

  // Throws DeviceError "[what] NCCL: <its message>" unless `result` is success.
  void check(ncclResult_t result, const char* what) const;
};

}  // namespace rk
