#include "engine/group/nccl/nccl.h"

#include "engine/base/error.h"
#include "engine/driver/required_library.h"

namespace rk {
namespace {

RequiredLibrary nccl() {
  return {"NCCL", fmt::format("libnccl.so.{}", NCCL_MAJOR),
          fmt::format("install libnccl{}, or start one process", NCCL_MAJOR)};
}

}  // namespace

Nccl::Nccl()
    : library(load_required(nccl())),
      get_unique_id(function_of<decltype(ncclGetUniqueId)>(library, nccl(), "ncclGetUniqueId")),
      init_rank(function_of<decltype(ncclCommInitRank)>(library, nccl(), "ncclCommInitRank")),
      destroy(function_of<decltype(ncclCommDestroy)>(library, nccl(), "ncclCommDestroy")),
      abort(function_of<decltype(ncclCommAbort)>(library, nccl(), "ncclCommAbort")),
      all_gather(function_of<decltype(ncclAllGather)>(library, nccl(), "ncclAllGather")),
      all_reduce(function_of<decltype(ncclAllReduce)>(library, nccl(), "ncclAllReduce")),
      error_string(
          function_of<decltype(ncclGetErrorString)>(library, nccl(), "ncclGetErrorString")) {}

void Nccl::check(ncclResult_t result, const char* what) const {
  if (result == ncclSuccess) return;
  fail<DeviceError>("[{}] NCCL: {}; NCCL_DEBUG=WARN says more", what, error_string(result));
}

}  // namespace rk
