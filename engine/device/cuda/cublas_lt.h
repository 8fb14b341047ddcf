// cuBLASLt, loaded when it is first needed, and a product of it (rk::PreparedGemm,
// engine/device/gemm.h): its descriptors and the kernel that its heuristics chose.
#pragma once

#include "engine/device/gemm_shape.h"
#include "engine/system/dynamic_library.h"

#include <cublasLt.h>

#include <cstddef>
#include <memory>

namespace rk {

struct CublasLt {
  CublasLt();  // DeviceError where the library or one of its functions is missing
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  DynamicLibrary library;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) create_product;
  decltype(&cublasLtMatmulDescDestroy) destroy_product;
  decltype(&cublasLtMatmulDescSetAttribute) set_product;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtGetStatusString) status_string;
  cublasLtHandle_t handle = nullptr;

  // DeviceError "[gemm] <the library's words>" unless `status` is success.
  void check(cublasStatus_t status) const;
};

class LtProduct {
 public:
  // DeviceError where the library has no kernel for it. workspace: what run() gives it.
  LtProduct(std::shared_ptr<const CublasLt> library, const GemmShape& shape,
            const GemmPlaces& places, std::size_t workspace_bytes);
  void run(void* workspace, cudaStream_t stream) const;

 private:
  template <class T> using Held = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  Held<cublasLtMatrixLayoutOpaque_t> layout(DType type, std::int64_t rows, std::int64_t columns,
                                            std::int64_t stride) const;
  void choose(std::size_t workspace_bytes);

  std::shared_ptr<const CublasLt> library_;
  GemmShape shape_;
  GemmPlaces places_;
  std::size_t workspace_bytes_;
  Held<cublasLtMatmulDescOpaque_t> product_;
  // As the library sees them, by columns: row-major C is C^T = op(B)^T op(A)^T.
  Held<cublasLtMatrixLayoutOpaque_t> first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace rk
