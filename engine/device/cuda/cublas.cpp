#include "engine/device/cuda/cublas.h"

#include "engine/base/error.h"
#include "engine/driver/libraries.h"

namespace rk {
namespace {

template <class Function> Function* required(const DynamicLibrary& library, const char* name) {
  if (auto* function = library.find<Function>(name)) return function;
  fail<DeviceError>("cuBLAS has no {}; install the one of CUDA {}", name, CUBLAS_VER_MAJOR);
}

DynamicLibrary load() {
  DynamicLibrary library = load_cuda_library(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR));
  if (library.handle() == nullptr) {
    fail<DeviceError>("cuBLAS cannot be loaded: {}; install the one of CUDA {}", library.problem(),
                      CUBLAS_VER_MAJOR);
  }
  return library;
}

}  // namespace

Cublas::Cublas()
    : library(load()),
      create(required<decltype(cublasCreate_v2)>(library, "cublasCreate_v2")),
      destroy(required<decltype(cublasDestroy_v2)>(library, "cublasDestroy_v2")),
      set_stream(required<decltype(cublasSetStream_v2)>(library, "cublasSetStream_v2")),
      set_workspace(required<decltype(cublasSetWorkspace_v2)>(library, "cublasSetWorkspace_v2")),
      set_math_mode(required<decltype(cublasSetMathMode)>(library, "cublasSetMathMode")),
      gemm(required<decltype(cublasSgemm_v2)>(library, "cublasSgemm_v2")),
      status_string(required<decltype(cublasGetStatusString)>(library, "cublasGetStatusString")) {}

void Cublas::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail<DeviceError>("[{}] {}", what, status_string(status));
}

}  // namespace rk
