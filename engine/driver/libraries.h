// Where NVIDIA's libraries (cuBLAS, cuDNN, NCCL) are looked for. On few machines the loader finds
// them all: Python's wheels install them into folders of their own, site-packages/nvidia/*/lib.
#pragma once

#include "engine/system/dynamic_library.h"

#include <string>
#include <vector>

namespace rk {

// The environment that tells where the libraries are; empty: not set.
struct CudaSurroundings {
  std::string libraries = {};    // $RK_CUDA_LIBRARIES: folders separated by colons
  std::string virtual_env = {};  // $VIRTUAL_ENV
  std::string path = {};         // $PATH: its python3 may have them installed
  std::string home = {};         // $HOME
};

// Folders, as glob(3) patterns, in search order: named, the loader's path, usual.
struct CudaPlaces {
  std::vector<std::string> named;  // named by the user, so searched before the loader's path
  std::vector<std::string> usual;  // searched if the loader finds nothing
};
CudaPlaces cuda_places(const CudaSurroundings& surroundings);

// Loads the first library of that name that can be loaded. If none can, problem() names every
// place.
DynamicLibrary load_library(const std::string& soname, const CudaPlaces& places);

// load_library() with this machine's environment: "libcublas.so.13".
DynamicLibrary load_cuda_library(const std::string& soname);

// As load_cuda_library(), for cuDNN. Its engines are compiled at first use by the NVRTC of that
// CUDA version, and NVRTC finds its built-in functions only through the loader, so they are loaded
// first.
DynamicLibrary load_cudnn_library(int major, int cuda_major);

}  // namespace rk
