#include "engine/dynamic_library.h"

#include <dlfcn.h>

namespace rk {

DynamicLibrary::DynamicLibrary(const std::string& name) {
  // RTLD_NODELETE: NVIDIA's libraries leave threads, exit handlers and kernels in graphs behind,
  // whose code must stay.
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    problem_ = dlerror();
    return;
  }
  handle_ = std::shared_ptr<void>(handle, [](void* library) { dlclose(library); });
}

void* DynamicLibrary::address(const char* name) const {
  return handle_ ? dlsym(handle_.get(), name) : nullptr;
}

}  // namespace rk
