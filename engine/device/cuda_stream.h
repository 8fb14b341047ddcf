// CUDA's streams by name, for headers that are read by files which do not see CUDA's own.
#pragma once

struct CUstream_st;

namespace rk {

using CudaStream = CUstream_st*;  // cudaStream_t

}  // namespace rk
