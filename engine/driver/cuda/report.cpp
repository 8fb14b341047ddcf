#include "engine/driver/cuda/device_code.h"
#include "engine/driver/device.h"
#include "engine/driver/libraries.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>

#if __has_include(<cudnn_version.h>)
#include <cudnn_version.h>
#endif

namespace rk {
namespace {

// The runtime keeps an error until asked; clear it, so that the next call does not report it again.
GpuReport::Error described(cudaError_t error) {
  cudaGetLastError();
  if (error == cudaSuccess) return {};
  return {static_cast<int>(error), cudaGetErrorString(error)};
}

#if defined(CUDNN_MAJOR)
GpuReport::Library cudnn() {
  const DynamicLibrary library = load_cuda_library(fmt::format("libcudnn.so.{}", CUDNN_MAJOR));
  // cuDNN 9.8 supports every graph that is built here (cmake/cudnn.cmake).
  static_assert(CUDNN_MAJOR == 9);
  GpuReport::Library result{.name = "cuDNN",
                            .least = 90800,
                            .loaded = 0,
                            .path = library.path(),
                            .problem = library.problem()};
  if (auto* version = library.find<std::size_t()>("cudnnGetVersion")) {
    result.loaded = static_cast<int>(version());
  }
  return result;
}
#endif

GpuReport::Library cublas() {
  const DynamicLibrary library =
      load_cuda_library(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR));
  // Every version of one major number has the functions called here (engine/device/cuda/cublas.h).
  GpuReport::Library result{.name = "cuBLAS",
                            .least = 10000 * CUBLAS_VER_MAJOR,
                            .loaded = 0,
                            .path = library.path(),
                            .problem = library.problem()};
  if (auto* property = library.find<decltype(cublasGetProperty)>("cublasGetProperty")) {
    int major = 0;
    int minor = 0;
    int patch = 0;
    property(MAJOR_VERSION, &major);
    property(MINOR_VERSION, &minor);
    property(PATCH_LEVEL, &patch);
    result.loaded = 10000 * major + 100 * minor + patch;
  }
  return result;
}

}  // namespace

bool has_gpu_code() { return true; }

GpuReport probe_gpus() {
  GpuReport report;
  report.built = true;
  report.runtime = CUDART_VERSION;
  report.architectures = RK_CUDA_CODE;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) report.visible = visible;
  report.error = described(cudaDriverGetVersion(&report.driver));
  if (report.driver == 0) return report;
  int count = 0;
  report.error = described(cudaGetDeviceCount(&count));
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    report.error = described(cudaGetDeviceProperties(&properties, i));
    if (report.error.code != 0) return report;
    report.cards.push_back({.name = properties.name,
                            .compute_capability = 10 * properties.major + properties.minor,
                            .bytes = static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  if (!report.cards.empty()) {
    report.libraries.push_back(cublas());
#if defined(CUDNN_MAJOR)
    report.libraries.push_back(cudnn());
#endif
  }
  report.start = [](int card) {
    const cudaError_t error = cudaSetDevice(card);
    return described(error == cudaSuccess ? load_device_code() : error);
  };
  return report;
}

}  // namespace rk
