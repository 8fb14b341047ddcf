// The search for libraries on made-up machines, each a folder.
#include "engine/driver/libraries.h"

#include "engine/driver/required_library.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rk {
namespace {

namespace fs = std::filesystem;

class CudaLibraries : public testing::Test {
 protected:
  std::string at(const std::string& path) const { return machine_.in(path); }
  std::string folder(const std::string& path) const {
    fs::create_directories(at(path));
    return at(path);
  }
  // Puts a library with functions of NVML at that path.
  std::string library(const std::string& path) const {
    folder(fs::path(path).parent_path().string());
    fs::copy_file(RK_FAKE_NVML, at(path));
    return at(path);
  }

  const TemporaryFolder machine_;
};

constexpr const char* kName = "libmade_up_for_tests.so.9";

TEST_F(CudaLibraries, WheelsOfThePythonInPathAreFoundAsItIsNamedAndAsItsLinksEnd) {
  folder("usr/bin");
  std::ofstream(at("usr/bin/python3.12")) << "#!";
  folder("venv/bin");
  fs::create_symlink(at("usr/bin/python3.12"), at("venv/bin/python3"));
  const std::string path = at("empty") + "::" + at("venv/bin") + "/:" + at("usr/bin");
  const std::string wheel = "/lib/python3.12/site-packages/nvidia/";
  EXPECT_EQ(load_library(kName, cuda_places({.path = path})).handle(), nullptr);
  const std::string real = library("usr" + wheel + "cudnn/lib/" + kName);
  EXPECT_EQ(load_library(kName, cuda_places({.path = path})).path(), real);
  const std::string named = library("venv" + wheel + "cudnn/lib/" + kName);
  EXPECT_EQ(load_library(kName, cuda_places({.path = path})).path(), named);
  EXPECT_EQ(load_library(kName, cuda_places({.path = at("venv/bin")})).path(), named);
  // The environment that is active is not always the one whose python3 comes first.
  const std::string active = library("other" + wheel + "cu13/lib/" + kName);
  EXPECT_EQ(load_library(kName, cuda_places({.virtual_env = at("other"), .path = path})).path(),
            active);
  const std::string home = library("home/.local" + wheel + "cu13/lib/" + kName);
  EXPECT_EQ(load_library(kName, cuda_places({.home = at("home")})).path(), home);
}

TEST_F(CudaLibraries, WhatTheUserNamesComesBeforeTheLoadersAndThatBeforeTheRest) {
  const auto is_ours = [](const DynamicLibrary& found) {
    return found.find<int()>("nvmlInit_v2") != nullptr;
  };
  library("a/libm.so.6");
  const std::string b = library("b/libm.so.6");
  EXPECT_FALSE(is_ours(load_library("libm.so.6", {.named = {}, .usual = {at("a")}})));
  const CudaPlaces places = cuda_places({.libraries = at("none") + ":" + at("b") + ":" + at("a")});
  const DynamicLibrary found = load_library("libm.so.6", places);
  EXPECT_TRUE(is_ours(found));
  EXPECT_EQ(found.path(), b);
}

TEST_F(CudaLibraries, AFolderMayHaveSignsOfAPatternInItsName) {
  const std::string file = library("a[1]*?/" + std::string(kName));
  EXPECT_EQ(load_library(kName, cuda_places({.libraries = at("a[1]*?")})).path(), file);
  const std::string other = library("b\\c/" + std::string(kName));
  EXPECT_EQ(load_library(kName, cuda_places({.libraries = at("b\\c")})).path(), other);
}

TEST_F(CudaLibraries, WhatTheSurroundingsDoNotNameIsNoPlace) {
  EXPECT_EQ(cuda_places({.libraries = "::" + at("x") + "::" + at("y") + ":"}).named,
            (std::vector<std::string>{at("x"), at("y")}));
  EXPECT_EQ(cuda_places({}).usual.front(), "/usr/local/lib/python3*/dist-packages/nvidia/*/lib");
}

TEST_F(CudaLibraries, NvrtcsBuiltInFunctionsAreThereBeforeCudnn) {
  library("wheel/libnvrtc.so.98");
  const std::string builtins = library("wheel/libnvrtc-builtins.so.98.1");
  const std::string cudnn = library("flat/libcudnn.so.97");
  setenv("RK_CUDA_LIBRARIES", (at("flat") + ":" + at("wheel")).c_str(), 1);
  const DynamicLibrary found = load_cudnn_library(97, 98);
  unsetenv("RK_CUDA_LIBRARIES");
  EXPECT_EQ(found.path(), cudnn);
  EXPECT_NE(dlopen(builtins.c_str(), RTLD_LAZY | RTLD_NOLOAD), nullptr);
}

TEST_F(CudaLibraries, WhatIsNoLibraryIsPassedOver) {
  folder("a");
  std::ofstream(at("a/" + std::string(kName))) << "a text";
  const std::string b = library("b/" + std::string(kName));
  EXPECT_EQ(load_library(kName, {.named = {}, .usual = {at("a"), at("b")}}).path(), b);
  const DynamicLibrary none = load_library(kName, {.named = {at("a")}, .usual = {}});
  EXPECT_EQ(none.handle(), nullptr);
  EXPECT_TRUE(holds(none.problem(), "; what was found is none: " + at("a/") + kName));
}

TEST_F(CudaLibraries, ARefusalNamesEveryPlace) {
  const CudaPlaces places = cuda_places({.libraries = at("x") + ":" + at("y"),
                                         .virtual_env = at("venv"),
                                         .path = "",
                                         .home = at("home")});
  EXPECT_EQ(places.named, (std::vector<std::string>{at("x"), at("y")}));
  const DynamicLibrary none = load_library(kName, places);
  EXPECT_EQ(none.handle(), nullptr);
  EXPECT_EQ(none.path(), "");
  for (const std::string& place :
       {at("x"), at("y"), std::string("the loader's path (libmade_up_for_tests.so.9: cannot open"),
        at("venv/lib/python3*/site-packages/nvidia/*/lib"),
        at("home/.local/lib/python3*/site-packages/nvidia/*/lib"),
        std::string("/usr/local/lib/python3*/dist-packages/nvidia/*/lib"),
        std::string("/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib"),
        std::string("/usr/local/cuda/lib64")}) {
    EXPECT_TRUE(holds(none.problem(), place)) << place << "\n" << none.problem();
  }
  EXPECT_FALSE(holds(none.problem(), "RK_CUDA_LIBRARIES"));
  EXPECT_TRUE(holds(load_library(kName, cuda_places({})).problem(),
                    "was looked for in RK_CUDA_LIBRARIES (names no folder), the loader's"));
}

TEST(RequiredLibrary, IsRefusedWhereItOrAFunctionIsMissing) {
  EXPECT_EQ(message_of<DeviceError>([] {
              RequiredLibrary("cuBLAS", DynamicLibrary::missing("nowhere"), "install it");
            }),
            "cuBLAS cannot be loaded: nowhere; install it");
  const RequiredLibrary c("the C library", DynamicLibrary("libc.so.6"), "install it");
  int (*absolute)(int) = nullptr;
  c.find(absolute, "abs");
  EXPECT_EQ(absolute(-3), 3);
  EXPECT_EQ(message_of<DeviceError>([&] { c.find(absolute, "no_such_function"); }),
            "the C library has no no_such_function; install it");
}

}  // namespace
}  // namespace rk
