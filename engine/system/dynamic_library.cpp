#include "engine/system/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <utility>

namespace rk {

DynamicLibrary::DynamicLibrary(const std::string& name) {
  // RTLD_NODELETE: NVIDIA's libraries leave threads, exit handlers and captured kernels behind,
  // whose code must stay mapped.
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    problem_ = dlerror();
    return;
  }
  handle_ = std::shared_ptr<void>(handle, [](void* library) { dlclose(library); });
}

DynamicLibrary DynamicLibrary::missing(std::string problem) {
  DynamicLibrary library;
  library.problem_ = std::move(problem);
  return library;
}

std::string DynamicLibrary::path() const {
  link_map* map = nullptr;
  if (!handle_ || dlinfo(handle_.get(), RTLD_DI_LINKMAP, &map) != 0) return "";
  return map->l_name;
}

void* DynamicLibrary::address(const char* name) const {
  return handle_ ? dlsym(handle_.get(), name) : nullptr;
}

}  // namespace rk
