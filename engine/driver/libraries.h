// Where NVIDIA's libraries are looked for: cuBLAS, cuDNN, NCCL. On few machines the loader finds
// all of them: what Python's wheels bring lies in folders of its own, site-packages/nvidia/*/lib.
#pragma once

#include "engine/system/dynamic_library.h"

#include <string>
#include <vector>

namespace rk {

// What of a machine says where they are; empty: not set.
struct CudaSurroundings {
  std::string libraries = {};    // $RK_CUDA_LIBRARIES: folders, a colon between them
  std::string virtual_env = {};  // $VIRTUAL_ENV
  std::string path = {};         // $PATH: whose python3 may have them
  std::string home = {};         // $HOME
};

// Folders, as patterns of glob(3), in the order they are looked in.
struct CudaPlaces {
  std::vector<std::string> named;  // by the user, who knows better than the loader
  std::vector<std::string> usual;  // where the loader finds nothing
};
CudaPlaces cuda_places(const CudaSurroundings& surroundings);

// The first of that name that can be loaded. Where none can, problem() names every place.
DynamicLibrary load_library(const std::string& soname, const CudaPlaces& places);

// On this machine: "libcublas.so.13".
DynamicLibrary load_cuda_library(const std::string& soname);

// The same of cuDNN, whose engines are compiled when they are first used, by the NVRTC of that CUDA
// version: NVRTC asks the loader alone for its built-in functions, so they are loaded first.
DynamicLibrary load_cudnn_library(int major, int cuda_major);

}  // namespace rk
