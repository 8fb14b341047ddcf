// A library of NVIDIA's without which a computation cannot go on.
#pragma once

#include "engine/base/error.h"
#include "engine/driver/libraries.h"

#include <string>

namespace rk {

struct RequiredLibrary {
  std::string name;    // "cuBLAS"
  std::string soname;  // "libcublas.so.13"
  std::string advice;  // what to do if it is missing: "install ..."
};

// Throws DeviceError, with every place that was looked in, if it cannot be loaded.
inline DynamicLibrary load_required(const RequiredLibrary& required) {
  DynamicLibrary library = load_cuda_library(required.soname);
  if (library.handle() != nullptr) return library;
  fail<DeviceError>("{} cannot be loaded: {}; {}", required.name, library.problem(),
                    required.advice);
}

// Throws DeviceError if the library has no function with this name.
template <class Function>
Function* function_of(const DynamicLibrary& library, const RequiredLibrary& required,
                      const char* name) {
  if (auto* function = library.find<Function>(name)) return function;
  fail<DeviceError>("{} has no {}; {}", required.name, name, required.advice);
}

}  // namespace rk
