// What a file may be called that Python is to import, such as the loader of torch_loader.h.
#pragma once

#include <string>

namespace rk {

// Whether a module of this name would hide, from those in its folder, one of Python's own or one
// that every loader imports.
bool hides_python_module(const std::string& name);

// Whether `import NAME` works in Python.
bool is_python_name(const std::string& name);

}  // namespace rk
