#include "engine/device/cuda/cublas_lt.h"

#include "engine/base/error.h"
#include "engine/driver/libraries.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rk {
namespace {

template <class Function> Function* required(const DynamicLibrary& library, const char* name) {
  if (auto* function = library.find<Function>(name)) return function;
  fail<DeviceError>("cuBLASLt has no {}; install the one of CUDA {}", name, CUBLAS_VER_MAJOR);
}

DynamicLibrary load() {
  DynamicLibrary library = load_cuda_library(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR));
  if (library.handle() == nullptr) {
    fail<DeviceError>("cuBLASLt cannot be loaded: {}; install the one of CUDA {}",
                      library.problem(), CUBLAS_VER_MAJOR);
  }
  return library;
}

cudaDataType_t data_type(DType type) {
  switch (type) {
    case DType::kFloat16: return CUDA_R_16F;
    case DType::kBfloat16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

cublasOperation_t operation(const Factor& factor) {
  return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// The largest power of two, up to 256, that the address is a multiple of.
std::uint32_t alignment(const void* place) {
  std::uint32_t bytes = 256;
  while (reinterpret_cast<std::uintptr_t>(place) % bytes != 0) bytes /= 2;
  return bytes;
}

}  // namespace

CublasLt::CublasLt()
    : library(load()),
      create(required<decltype(cublasLtCreate)>(library, "cublasLtCreate")),
      destroy(required<decltype(cublasLtDestroy)>(library, "cublasLtDestroy")),
      matmul(required<decltype(cublasLtMatmul)>(library, "cublasLtMatmul")),
      create_product(
          required<decltype(cublasLtMatmulDescCreate)>(library, "cublasLtMatmulDescCreate")),
      destroy_product(
          required<decltype(cublasLtMatmulDescDestroy)>(library, "cublasLtMatmulDescDestroy")),
      set_product(required<decltype(cublasLtMatmulDescSetAttribute)>(
          library, "cublasLtMatmulDescSetAttribute")),
      create_layout(
          required<decltype(cublasLtMatrixLayoutCreate)>(library, "cublasLtMatrixLayoutCreate")),
      destroy_layout(
          required<decltype(cublasLtMatrixLayoutDestroy)>(library, "cublasLtMatrixLayoutDestroy")),
      create_preference(required<decltype(cublasLtMatmulPreferenceCreate)>(
          library, "cublasLtMatmulPreferenceCreate")),
      destroy_preference(required<decltype(cublasLtMatmulPreferenceDestroy)>(
          library, "cublasLtMatmulPreferenceDestroy")),
      set_preference(required<decltype(cublasLtMatmulPreferenceSetAttribute)>(
          library, "cublasLtMatmulPreferenceSetAttribute")),
      heuristic(required<decltype(cublasLtMatmulAlgoGetHeuristic)>(
          library, "cublasLtMatmulAlgoGetHeuristic")),
      status_string(
          required<decltype(cublasLtGetStatusString)>(library, "cublasLtGetStatusString")) {
  check(create(&handle));
}

CublasLt::~CublasLt() {
  if (handle != nullptr) destroy(handle);
}

void CublasLt::check(cublasStatus_t status) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail<DeviceError>("[gemm] {}", status_string(status));
}

LtProduct::LtProduct(std::shared_ptr<const CublasLt> library, const MatrixProduct& product,
                     std::size_t workspace_bytes)
    : library_(std::move(library)),
      product_(product),
      workspace_bytes_(workspace_bytes),
      descriptor_(nullptr, library_->destroy_product),
      first_(layout(product.b)),
      second_(layout(product.a)),
      result_(layout(product.c)) {
  const CublasLt& lt = *library_;
  cublasLtMatmulDesc_t made = nullptr;
  // For float32 inputs this computes in float32 throughout: TF32 is a separate compute type.
  lt.check(lt.create_product(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  descriptor_.reset(made);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    lt.check(lt.set_product(made, attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation(product.b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation(product.a));
  if (product.bias != nullptr) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
  }
  choose(workspace_bytes);
}

// Column-major, the stored matrix is its transpose.
template <class Void>
LtProduct::Held<cublasLtMatrixLayoutOpaque_t> LtProduct::layout(
    const StoredMatrix<Void>& matrix) const {
  cublasLtMatrixLayout_t made = nullptr;
  library_->check(library_->create_layout(&made, data_type(matrix.type),
                                          static_cast<std::uint64_t>(matrix.columns),
                                          static_cast<std::uint64_t>(matrix.rows), matrix.stride));
  return {made, library_->destroy_layout};
}

// Takes the heuristics' first choice among the kernels that reduce partial sums in float32.
void LtProduct::choose(std::size_t workspace_bytes) {
  const CublasLt& lt = *library_;
  cublasLtMatmulPreference_t made = nullptr;
  lt.check(lt.create_preference(&made));
  const Held<cublasLtMatmulPreferenceOpaque_t> preference(made, lt.destroy_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    lt.check(lt.set_preference(made, attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(product_.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(product_.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(product_.c.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(product_.c.data));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t asked =
      lt.heuristic(lt.handle, descriptor_.get(), first_.get(), second_.get(), result_.get(),
                   result_.get(), made, 1, &found, &count);
  if (asked != CUBLAS_STATUS_NOT_SUPPORTED) lt.check(asked);  // else: count is 0
  if (count == 0) {
    fail<DeviceError>("[gemm] cuBLASLt has no kernel for m={} n={} k={}", product_.m(),
                      product_.n(), product_.k());
  }
  algorithm_ = found.algo;
}

void LtProduct::run(void* workspace, cudaStream_t stream) const {
  const float one = 1, held = product_.accumulate ? 1.0F : 0.0F;
  library_->check(library_->matmul(library_->handle, descriptor_.get(), &one, product_.b.data,
                                   first_.get(), product_.a.data, second_.get(), &held,
                                   product_.c.data, result_.get(), product_.c.data, result_.get(),
                                   &algorithm_, workspace, workspace_bytes_, stream));
}

}  // namespace rk
