// cuBLAS, loaded at first use, so that a program with GPU code also starts where it is missing.
#pragma once

#include "engine/system/dynamic_library.h"

#include <cublas_v2.h>

namespace rk {

struct Cublas {
  Cublas();  // throws DeviceError if the library or one of its functions is missing

  DynamicLibrary library = DynamicLibrary::missing("");  // keeps the functions loaded
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSgemm_v2) gemm = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;

  // Throws DeviceError "[what] <cuBLAS's message>" unless `status` is success.
  void check(cublasStatus_t status, const char* what) const;
};

}  // namespace rk
