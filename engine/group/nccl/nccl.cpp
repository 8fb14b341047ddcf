#include "engine/group/nccl/nccl.h"

#include "engine/base/error.h"
#include "engine/driver/libraries.h"
#include "engine/driver/required_library.h"

namespace rk {

Nccl::Nccl() {
  const RequiredLibrary from("NCCL", load_cuda_library(fmt::format("libnccl.so.{}", NCCL_MAJOR)),
                             fmt::format("install libnccl{}, or start one process", NCCL_MAJOR));
  library = from.library();
  from.find(get_unique_id, "ncclGetUniqueId");
  from.find(init_rank, "ncclCommInitRank");
  from.find(destroy, "ncclCommDestroy");
  from.find(abort, "ncclCommAbort");
  from.find(all_gather, "ncclAllGather");
  from.find(all_reduce, "ncclAllReduce");
  from.find(error_string, "ncclGetErrorString");
}

void Nccl::check(ncclResult_t result, const char* what) const {
  if (result == ncclSuccess) return;
  fail<DeviceError>("[{}] NCCL: {}; NCCL_DEBUG=WARN says more", what, error_string(result));
}

}  // namespace rk
