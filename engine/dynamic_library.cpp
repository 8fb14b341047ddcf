#include "engine/dynamic_library.h"

#include <dlfcn.h>

namespace rk {

DynamicLibrary::DynamicLibrary(const std::string& name) {
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
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
