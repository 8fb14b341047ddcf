#include "engine/driver/libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace rk {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(':');
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return parts;
}

// A folder's name with the characters escaped that glob(3) would take for a pattern.
std::string literal(const std::string& folder) {
  std::string result;
  for (const char c : folder) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

// The prefixes (folders above bin/) of the first python3 in PATH: the one named in PATH, which in a
// virtual environment is the environment itself, and the one its symbolic links lead to.
std::vector<std::string> python_prefixes(const std::string& path) {
  for (const std::string& folder : split(path)) {
    const fs::path python = fs::path(folder) / "python3";
    std::error_code error;
    if (!fs::exists(python, error)) continue;
    std::vector<std::string> prefixes = {python.parent_path().parent_path()};
    const fs::path real = fs::canonical(python, error);
    if (!error) prefixes.push_back(real.parent_path().parent_path());
    return prefixes;
  }
  return {};
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

CudaPlaces cuda_places(const CudaSurroundings& surroundings) {
  CudaPlaces places;
  for (const std::string& folder : split(surroundings.libraries)) {
    places.named.push_back(literal(folder));
  }
  const auto add = [&](const std::string& pattern) {
    if (std::ranges::find(places.usual, pattern) == places.usual.end()) {
      places.usual.push_back(pattern);
    }
  };
  const auto add_python = [&](const std::string& prefix) {
    add(literal(prefix) + "/lib/python3*/site-packages/nvidia/*/lib");
  };
  if (!surroundings.virtual_env.empty()) add_python(surroundings.virtual_env);
  for (const std::string& prefix : python_prefixes(surroundings.path)) add_python(prefix);
  if (!surroundings.home.empty()) add_python(surroundings.home + "/.local");
  add("/usr/local/lib/python3*/dist-packages/nvidia/*/lib");
  add("/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib");
  add("/usr/local/cuda/lib64");
  for (const std::string& folder : split(RK_CUDA_FOLDERS)) add(literal(folder));
  return places;
}

DynamicLibrary load_library(const std::string& soname, const CudaPlaces& places) {
  std::vector<std::string> looked_in, refused;
  const auto from = [&](const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      looked_in.push_back(pattern);
      for (const std::string& file : matches(pattern + "/" + literal(soname))) {
        DynamicLibrary library(file);
        if (library.handle() != nullptr) return library;
        refused.push_back(library.problem());
      }
    }
    return DynamicLibrary::missing("");
  };
  if (DynamicLibrary named = from(places.named); named.handle() != nullptr) return named;
  DynamicLibrary found(soname);
  if (found.handle() != nullptr) return found;
  looked_in.push_back(fmt::format("the loader's path ({})", found.problem()));
  if (DynamicLibrary usual = from(places.usual); usual.handle() != nullptr) return usual;
  return DynamicLibrary::missing(
      fmt::format("{} was looked for in {}{}{}{}", soname,
                  places.named.empty() ? "RK_CUDA_LIBRARIES (names no folder), " : "",
                  fmt::join(looked_in, ", "),
                  refused.empty() ? "" : "; what was found is none: ", fmt::join(refused, ", ")));
}

DynamicLibrary load_cuda_library(const std::string& soname) {
  return load_library(soname, cuda_places({.libraries = environment("RK_CUDA_LIBRARIES"),
                                           .virtual_env = environment("VIRTUAL_ENV"),
                                           .path = environment("PATH"),
                                           .home = environment("HOME")}));
}

DynamicLibrary load_cudnn_library(int major, int cuda_major) {
  const DynamicLibrary nvrtc = load_cuda_library(fmt::format("libnvrtc.so.{}", cuda_major));
  if (nvrtc.handle() != nullptr) {
    const std::string folder = fs::path(nvrtc.path()).parent_path();
    for (const std::string& file : matches(literal(folder) + "/libnvrtc-builtins.so.*")) {
      const DynamicLibrary builtins(file);  // stays loaded after this scope, as every
                                            // DynamicLibrary
    }
  }
  return load_cuda_library(fmt::format("libcudnn.so.{}", major));
}

}  // namespace rk
