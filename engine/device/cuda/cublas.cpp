#include "engine/device/cuda/cublas.h"

#include "engine/base/error.h"
#include "engine/driver/required_library.h"

namespace rk {
namespace {

RequiredLibrary cublas() {
  return {"cuBLAS", fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR),
          fmt::format("install the one of CUDA {}", CUBLAS_VER_MAJOR)};
}

}  // namespace

Cublas::Cublas()
    : library(load_required(cublas())),
      create(function_of<decltype(cublasCreate_v2)>(library, cublas(), "cublasCreate_v2")),
      destroy(function_of<decltype(cublasDestroy_v2)>(library, cublas(), "cublasDestroy_v2")),
      set_stream(
          function_of<decltype(cublasSetStream_v2)>(library, cublas(), "cublasSetStream_v2")),
      set_workspace(
          function_of<decltype(cublasSetWorkspace_v2)>(library, cublas(), "cublasSetWorkspace_v2")),
      set_math_mode(
          function_of<decltype(cublasSetMathMode)>(library, cublas(), "cublasSetMathMode")),
      gemm(function_of<decltype(cublasSgemm_v2)>(library, cublas(), "cublasSgemm_v2")),
      status_string(function_of<decltype(cublasGetStatusString)>(library, cublas(),
                                                                 "cublasGetStatusString")) {}

void Cublas::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail<DeviceError>("[{}] {}", what, status_string(status));
}

}  // namespace rk
