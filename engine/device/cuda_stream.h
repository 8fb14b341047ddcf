// CUDA's stream type, for headers included by files that do not include CUDA's own.
#pragma once

struct CUstream_st;  // NOLINT(readability-identifier-naming): CUDA's name

namespace rk {

using CudaStream = CUstream_st*;  // cudaStream_t

}  // namespace rk
