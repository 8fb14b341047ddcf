// A shared library loaded at first use, so that a program starts on machines without it.
#pragma once

#include <memory>
#include <string>

namespace rk {

class DynamicLibrary {
 public:
  // `name` as the loader takes it: "libcudnn.so.9". If it cannot be loaded, problem() says why.
  explicit DynamicLibrary(const std::string& name);
  // A library that was not loaded, with the reason.
  static DynamicLibrary missing(std::string problem);

  const std::string& problem() const { return problem_; }  // empty: loaded
  void* handle() const { return handle_.get(); }  // the loader's; null if it was not loaded
  std::string path() const;  // the file it was loaded from; empty if it was not
  // The function with this name; null if the library has none.
  template <class Function> Function* find(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  DynamicLibrary() = default;
  void* address(const char* name) const;

  std::shared_ptr<void> handle_;
  std::string problem_;
};

}  // namespace rk
