// cuBLASLt, loaded at first use, and one prepared product (rk::PreparedGemm, engine/device/gemm.h):
// its descriptors and the kernel that cuBLASLt's heuristics chose.
#pragma once

#include "engine/device/matrix_product.h"
#include "engine/system/dynamic_library.h"

#include <cublasLt.h>

#include <cstddef>
#include <memory>

namespace rk {

struct CublasLt {
  CublasLt();  // throws DeviceError if the library or one of its functions is missing
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

  // Throws DeviceError "[gemm] <the library's message>" unless `status` is success.
  void check(cublasStatus_t status) const;
};

class LtProduct {
 public:
  // Throws DeviceError if the library has no kernel for the product. workspace_bytes: the size of
  // the workspace passed to run().
  LtProduct(std::shared_ptr<const CublasLt> library, const MatrixProduct& product,
            std::size_t workspace_bytes);
  void run(void* workspace, cudaStream_t stream) const;

 private:
  template <class T> using Held = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  template <class Void>
  Held<cublasLtMatrixLayoutOpaque_t> layout(const StoredMatrix<Void>& matrix) const;
  void choose(std::size_t workspace_bytes);

  std::shared_ptr<const CublasLt> library_;
  MatrixProduct product_;
  std::size_t workspace_bytes_;
  Held<cublasLtMatmulDescOpaque_t> descriptor_;
  // Column-major, as the library expects: row-major C is C^T = B^T A^T.
  Held<cublasLtMatrixLayoutOpaque_t> first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace rk
