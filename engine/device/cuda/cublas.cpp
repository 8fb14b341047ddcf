#include "engine/device/cuda/cublas.h"

#include "engine/base/error.h"
#include "engine/driver/libraries.h"
#include "engine/driver/required_library.h"

namespace rk {

Cublas::Cublas() {
  const RequiredLibrary from("cuBLAS",
                             load_cuda_library(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR)),
                             fmt::format("install the one of CUDA {}", CUBLAS_VER_MAJOR));
  library = from.library();
  from.find(create, "cublasCreate_v2");
  from.find(destroy, "cublasDestroy_v2");
  from.find(set_stream, "cublasSetStream_v2");
  from.find(set_workspace, "cublasSetWorkspace_v2");
  from.find(set_math_mode, "cublasSetMathMode");
  from.find(gemm, "cublasSgemm_v2");
  from.find(status_string, "cublasGetStatusString");
}

void Cublas::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail<DeviceError>("[{}] {}", what, status_string(status));
}

}  // namespace rk
