# Finds the CUDA toolkit and defines how device code is compiled.
#   RK_HAS_CUDA             ON if device code is built
#   rk_cuda_folder(NAME SOURCES...)  builds all .cu in folder NAME as library rk_NAME_cuda, which
#                           rk_NAME links; gives CUDA's headers to those of its SOURCES that are in a
#                           folder cuda, nccl or cudnn
#   RK_CUDA_TARGETS         global property: those libraries
# Device code has separate targets; of the host's code only folders named cuda, nccl or cudnn see it.

set(RK_HAS_CUDA OFF)
set(cuda_absent "")
if(NOT RK_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "RK_CUDA=${RK_CUDA}: no such value; use AUTO, ON or OFF")
elseif(RK_CUDA STREQUAL OFF)
  set(cuda_absent "RK_CUDA is OFF")
elseif(RK_SANITIZE AND NOT RK_CUDA STREQUAL ON)
  set(cuda_absent "a sanitizer is on")
else()
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # not found before, when it may not have been there
    if(NOT DEFINED ENV{CUDACXX})
      find_program(nvcc nvcc PATHS /usr/local/cuda/bin NO_CACHE)
      if(nvcc)
        set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "nvcc")
      endif()
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Set before the language is enabled, since CMake's own test compilation uses it.
    set(CMAKE_CUDA_ARCHITECTURES 80 CACHE STRING "CMake's own checks; see RK_CUDA_ARCHITECTURES")
    enable_language(CUDA)
    # nvcc may ask for an older g++, whose C++ library would be linked in place of the newer one.
    list(FILTER CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES EXCLUDE REGEX "/gcc/")
    find_package(CUDAToolkit QUIET)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 lacks nvcc's flag
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    if(NOT CUDAToolkit_FOUND)
      set(cuda_absent "${CMAKE_CUDA_COMPILER} has no toolkit beside it")
    elseif(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
      set(cuda_absent "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 12, the first with C++20")
    endif()
  else()
    set(cuda_absent "no nvcc was found")
  endif()
endif()

if(cuda_absent STREQUAL "")
  set(RK_HAS_CUDA ON)
elseif(RK_CUDA STREQUAL ON)
  message(FATAL_ERROR "RK_CUDA is ON, but ${cuda_absent}")
else()
  message(STATUS "No GPU code: ${cuda_absent}")
  return()
endif()

# A100, H100/H200 and B200, the last also as PTX for later GPUs; GPUs of the first's generation with
# a higher number (RTX 30 and 40) run its code. All three take half a minute of a build's twelve.
set(architectures 80-real 90-real)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
  list(APPEND architectures 90-virtual)
else()
  list(APPEND architectures 100-real 100-virtual)
endif()
set(RK_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "what device code is compiled for")
message(STATUS "GPU code: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, ${RK_CUDA_ARCHITECTURES}")

add_library(rk_cuda_options INTERFACE)
set(warnings_of_nvcc "")
set(warnings -Wall,-Wextra,-Wshadow,-Wconversion,-Wsign-conversion)
if(RK_WERROR)
  set(warnings_of_nvcc "SHELL:-Werror all-warnings")
  string(APPEND warnings ,-Werror)
endif()
target_include_directories(rk_cuda_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(rk_cuda_options INTERFACE
  ${warnings_of_nvcc} --expt-relaxed-constexpr -lineinfo
  # As on the host: round as the source says; fused multiply-adds are written as std::fma.
  -fmad=false
  # Not -Wpedantic: the line directives that nvcc generates are not standard C++.
  "SHELL:-Xcompiler ${warnings}"
  # Prints registers, shared memory and spills of every kernel; tools/scripts/record_resources.sh keeps them.
  "SHELL:-Xptxas -v")
set_property(TARGET rk_cuda_options PROPERTY INTERFACE_POSITION_INDEPENDENT_CODE OFF)

function(rk_cuda_folder name)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.cu)
  if(kernels)
    add_library(rk_${name}_cuda STATIC ${kernels})
    target_link_libraries(rk_${name}_cuda PRIVATE rk_cuda_options)
    set_target_properties(rk_${name}_cuda PROPERTIES
      CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_ARCHITECTURES "${RK_CUDA_ARCHITECTURES}"
      CUDA_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/tools/scripts/record_resources.sh)
    # The runtime is linked statically and looks for the driver at its first call, so the programs
    # also start without a driver.
    target_link_libraries(rk_${name} PUBLIC $<LINK_ONLY:rk_${name}_cuda>
      $<LINK_ONLY:CUDA::cudart_static>)
    set_property(GLOBAL APPEND PROPERTY RK_CUDA_TARGETS rk_${name}_cuda)
  endif()
  # Only these host files, which use CUDA or cuDNN, see their headers.
  foreach(source ${ARGN})
    if(source MATCHES "/(cuda|nccl)/")
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
        COMPILE_OPTIONS "${RK_CUDA_INCLUDE_OPTIONS}")
    elseif(source MATCHES "/cudnn/")
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
        COMPILE_OPTIONS "${RK_CUDNN_OPTIONS}")
    endif()
  endforeach()
endfunction()

# Sets OPTIONS to flags for folders of headers. The compiler's own, where distributions put CUDA's headers, must not be
# named again: the C++ library would no longer find the C library's behind them.
function(rk_system_headers options)
  set(found "")
  foreach(folder ${ARGN})
    if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(APPEND found -isystem ${folder})
    endif()
  endforeach()
  set(${options} ${found} PARENT_SCOPE)
endfunction()

rk_system_headers(RK_CUDA_INCLUDE_OPTIONS ${CUDAToolkit_INCLUDE_DIRS})

# The same list as compute capabilities, for messages: "8.x, 9.x, 10.x and newer".
set(code "")
set(comma "")
foreach(architecture ${RK_CUDA_ARCHITECTURES})
  if(architecture MATCHES "^([0-9]+)[0-9][a-z]?-virtual$")
    string(APPEND code " and newer")
  elseif(architecture MATCHES "^([0-9]+)[0-9][a-z]?(-real)?$")
    string(APPEND code "${comma}${CMAKE_MATCH_1}.x")
    set(comma ", ")
  endif()
endforeach()
set_source_files_properties(engine/driver/cuda/report.cpp PROPERTIES
  COMPILE_DEFINITIONS RK_CUDA_CODE="${code}")
