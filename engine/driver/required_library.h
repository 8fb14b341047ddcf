// A library of NVIDIA's without which a computation cannot go on.
#pragma once

#include "engine/base/error.h"
#include "engine/system/dynamic_library.h"

#include <string>
#include <utility>

namespace rk {

class RequiredLibrary {
 public:
  // name: "cuBLAS". loaded: what load_cuda_library() gave. advice: what to do if it is missing:
  // "install ...". Throws DeviceError, with every place that was looked in, if it was not loaded.
  RequiredLibrary(std::string name, DynamicLibrary loaded, std::string advice)
      : name_(std::move(name)), advice_(std::move(advice)), library_(std::move(loaded)) {
    if (library_.handle() != nullptr) return;
    fail<DeviceError>("{} cannot be loaded: {}; {}", name_, library_.problem(), advice_);
  }

  const DynamicLibrary& library() const { return library_; }
  // Throws DeviceError if the library has no function with this name.
  template <class Function> void find(Function*& function, const char* name) const {
    function = library_.find<Function>(name);
    if (function == nullptr) fail<DeviceError>("{} has no {}; {}", name_, name, advice_);
  }

 private:
  std::string name_, advice_;
  DynamicLibrary library_;
};

}  // namespace rk
